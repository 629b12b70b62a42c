import { aws } from '../../shared/aws/registry.ts';
import { reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import type { PolicyInput } from '../../shared/core/policy.ts';
import type { LedgerStore, ReapWork, ScopeRequest } from '../../shared/core/ports.ts';
import type { Report } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import type { Region } from '../../simulator/aws/region.ts';
import { type AwsSimulator, startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';
import { enforce, MINUTE, TestQueue, testEngine } from '../support/run.ts';

export const CNI = 'node.k8s.amazonaws.com/instance_id';
export const DEAD = 'i-00000000000000000';
export const SHOOT = 'kubernetes.io/cluster/shoot';
export const MCM = (name: string) => ({ Name: name, [SHOOT]: '1', 'kubernetes.io/role/node': '1' });
export const AT_ONCE: PolicyInput = { grace: '0', minAge: '0' };
export { observe } from '../support/run.ts';
export { enforce, MINUTE };

export class Stage {
  readonly world = new World();
  readonly queue = new TestQueue();
  store: LedgerStore = new MemoryLedger(this.world.clock);
  region!: Region;
  simulator!: AwsSimulator;
  /** Runs before the request is answered. */
  onRequest: (operation: string, target: string) => void = () => {};

  static async start(): Promise<Stage> {
    const stage = new Stage();
    stage.simulator = await startAwsSimulator({ world: stage.world });
    stage.region = stage.simulator.region();
    Object.assign(process.env, awsEnvironment(stage.simulator.url));
    const take = stage.world.faults.take.bind(stage.world.faults);
    stage.world.faults.take = (operation, target) => {
      stage.onRequest(operation, target ?? '');
      return take(operation, target);
    };
    stage.world.advance(MINUTE);
    return stage;
  }
  close = () => this.simulator.close();

  engine = (policy: PolicyInput = AT_ONCE, store: LedgerStore = this.store) => ({
    ...testEngine(aws({ region: 'us-east-1' }) as never, store, policy),
    clock: this.world.clock,
  });
  run = async (policy: PolicyInput = AT_ONCE, request: ScopeRequest = {}, store?: LedgerStore): Promise<Report> =>
    (await sweep(this.engine(policy, store), 'sweep', request, enforce)).report;
  event = (change: 'started' | 'deleting' | 'deleted', vmId: string, time = this.world.now(), policy = AT_ONCE) =>
    vmEvent(
      { ...this.engine(policy), queue: this.queue },
      { eventId: 'e', cloud: 'aws', change, scopeId: 'aws:us-east-1', vmId, place: 'us-east-1', time },
      enforce,
    );
  reap = (items: ReapWork['items'], policy: PolicyInput = AT_ONCE, more: Partial<ReapWork> = {}) =>
    reap({ ...this.engine(policy), queue: this.queue }, this.work(items, more), enforce);
  work = (items: ReapWork['items'], more: Partial<ReapWork> = {}): ReapWork => ({
    kind: 'reap',
    runId: 'r',
    scopeId: 'aws:us-east-1',
    notBefore: this.world.now().toISOString(),
    attempt: 0,
    items,
    ...more,
  });
  deletes = () => this.world.writes().filter(({ operation }) => operation.startsWith('Delete'));
}
export const verdicts = ({ items }: Report) =>
  Object.fromEntries(items.map(({ id, verdict, reason, outcome }) => [id, `${verdict} ${reason} ${outcome}`]));
export const vol = (id: string) => ({ key: `aws:us-east-1:${id}`, id, type: 'ebs-volume' });
export const nic = (id: string) => ({ key: `aws:us-east-1:${id}`, id, type: 'ec2-network-interface' });
