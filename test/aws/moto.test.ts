import { AttachVolumeCommand, DetachVolumeCommand, EC2Client } from '@aws-sdk/client-ec2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import { sweep, vmEvent } from '../../shared/core/engine.ts';
import type { Report } from '../../shared/core/report.ts';
import { SystemClock } from '../../shared/local/clock.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { startProxy } from '../support/aws-proxy.ts';
import { awsEnvironment, motoMissing } from '../support/moto.ts';
import { enforce, testEngine } from '../support/run.ts';
import { type Estate, onMoto } from './estate.ts';

const CNI = 'node.k8s.amazonaws.com/instance_id';
const MCM = (name: string) => ({ Name: name, 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' });
const KARPENTER = { 'karpenter.sh/nodepool': 'default', 'kubernetes.io/cluster/eks': 'owned' };

/** The whole way on a server that we did not write. */
describe.skipIf(motoMissing())('a cluster that died, on moto', () => {
  let moto: Estate;
  let ec2: EC2Client;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  const seen: string[] = [];
  const gone: Record<string, string> = {};
  const kept: Record<string, { id: string; reason: string }> = {};
  const store = new MemoryLedger();
  const engine = () => ({
    ...testEngine(aws({ region: 'us-east-1' }) as never, store, { grace: '0', minAge: '0' }),
    clock: new SystemClock() as never,
  });
  const reasons = ({ items }: Report) => Object.fromEntries(items.map(({ id, reason }) => [id, reason]));

  beforeAll(async () => {
    moto = await onMoto();
    proxy = await startProxy(
      () => moto.url,
      (call) => seen.push(call),
    );
    Object.assign(process.env, awsEnvironment(proxy.url));
    ec2 = new EC2Client({
      region: 'us-east-1',
      endpoint: moto.url,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    const alive = await moto.run(MCM('worker-alive'));
    const dead = await moto.run(MCM('worker-dead'));
    const karpenter = await moto.run(KARPENTER);
    gone.machine = await moto.volume(MCM('worker-dead'));
    gone.cni = await moto.eni({ [CNI]: dead }, `aws-K8S-${dead}`);
    gone.claimed = await moto.volume(KARPENTER);
    await ec2.send(new AttachVolumeCommand({ VolumeId: gone.claimed, InstanceId: karpenter, Device: '/dev/sdf' }));
    const keep = async (name: string, reason: string, id: Promise<string>) => {
      kept[name] = { id: await id, reason };
    };
    await keep(
      'a persistent volume',
      'protected',
      moto.volume({ ...MCM('worker-dead'), 'kubernetes.io/created-for/pvc/name': 'data' }),
    );
    await keep('an opted-out volume', 'opted-out', moto.volume({ ...MCM('worker-dead'), 'gleaner-keep': '' }));
    await keep("a living owner's volume", 'owner-alive', moto.volume(MCM('worker-alive')));
    await keep("a living owner's ENI", 'owner-alive', moto.eni({ [CNI]: alive }));
    await keep('a volume that names nobody', 'owner-unknown', moto.volume(KARPENTER));
    await keep('an untagged volume', 'never listed', moto.volume({}));
    const started = {
      eventId: 'e',
      cloud: 'aws',
      change: 'started',
      scopeId: 'aws:us-east-1',
      place: 'us-east-1',
    } as const;
    await vmEvent(engine(), { ...started, vmId: karpenter, time: new Date() }, enforce);
    await ec2.send(new DetachVolumeCommand({ VolumeId: gone.claimed, InstanceId: karpenter, Device: '/dev/sdf' }));
    for (const id of [dead, karpenter]) await moto.terminate(id);
  });
  afterAll(async () => {
    await proxy.close();
    await moto.stop();
  });

  /** As the server saw them. */
  const writes = () => seen.filter((call) => !/:(Describe|List|Get)/.test(call));

  it('plan says what would go and why the rest stays, and makes no call that writes', async () => {
    const { report } = await sweep(engine(), 'plan', {}, enforce);
    expect(report).toMatchObject({ complete: true, counts: { reap: Object.keys(gone).length } });
    const would = report.items.filter(({ outcome }) => outcome === 'would-delete').map(({ id }) => id);
    expect(would.toSorted()).toEqual(Object.values(gone).toSorted());
    expect(Object.keys(report.calls).filter((operation) => !operation.startsWith('Describe'))).toEqual([]);
    expect(writes()).toEqual([]);
  });

  it('sweep deletes exactly these; each of the others is kept, with its reason', async () => {
    const { report } = await sweep(engine(), 'sweep', {}, enforce);
    expect(report.counts).toMatchObject({ deleted: Object.keys(gone).length, failed: 0, deferred: 0 });
    const said = reasons(report);
    for (const { id, reason } of Object.values(kept)) expect(said[id] ?? 'never listed').toBe(reason);
    const after = await sweep(engine(), 'plan', {}, enforce);
    expect(after.report.counts.reap).toBe(0);
    for (const { id, reason } of Object.values(kept)) expect(reasons(after.report)[id] ?? 'never listed').toBe(reason);
  });
});
