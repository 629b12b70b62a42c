import fc from 'fast-check';
import { expect, it } from 'vitest';
import { aws } from '../../shared/aws/registry.ts';
import { reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import type { StateChangeEvent } from '../../simulator/aws/events.ts';
import { startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { awsEnvironment } from '../support/moto.ts';
import { enforce, MINUTE, TestQueue, testEngine } from '../support/run.ts';

const GRACE = 10 * MINUTE;
const LAG = 30_000;
const CNI = 'node.k8s.amazonaws.com/instance_id';
const MCM = { 'kubernetes.io/cluster/shoot': '1', 'kubernetes.io/role/node': '1' };
const READS = ['DescribeVolumes', 'DescribeNetworkInterfaces', 'DescribeInstances'] as const;

const slot = fc.integer({ min: 0, max: 2 });
const step = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constant('boot' as const), slot) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('kill' as const), slot) },
  fc.tuple(fc.constant('detach' as const), slot),
  fc.tuple(fc.constant('borrow' as const), slot, fc.nat(20)),
  fc.tuple(fc.constant('return' as const), fc.nat(20)),
  fc.tuple(fc.constant('keep' as const), fc.nat(20)),
  { weight: 3, arbitrary: fc.tuple(fc.constant('wait' as const), fc.constantFrom(1, 4, 6, 11, 31)) },
  fc.tuple(fc.constant('lag' as const), fc.boolean()),
  fc.tuple(
    fc.constant('fail' as const),
    fc.constantFrom(...READS),
    fc.constantFrom('denied', 'partial', 'cut'),
    fc.nat(1),
  ),
  fc.tuple(fc.constant('lose' as const), fc.constantFrom('DeleteVolume', 'DeleteNetworkInterface')),
  { weight: 3, arbitrary: fc.tuple(fc.constant('events' as const), fc.boolean()) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('work' as const)) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('sweep' as const)) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** What is true, kept apart from the simulator and from the engine: who owns what, since when it is free, who wants it kept. */
interface Truth {
  readonly owner: string;
  /** The machine that its tags name, where they name one. */
  readonly machine: string | undefined;
  kept: boolean;
  freeSince: number | undefined;
  /** Another VM that took it in use since. Nothing at EC2 tells when that ended, so no grace can be asked for after it. */
  borrower?: string;
}

async function stage() {
  const world = new World();
  const simulator = await startAwsSimulator({ world });
  const region = simulator.region();
  region.busyMs = 0;
  Object.assign(process.env, awsEnvironment(simulator.url));
  const events: StateChangeEvent[] = [];
  simulator.events.listen((event) => events.push(event));
  const queue = new TestQueue();
  const store = new MemoryLedger(world.clock);
  const policy = { grace: '10m', minAge: '5m' };
  const cloud = aws({ region: region.name });
  const engine = { ...testEngine(cloud as never, store, policy), clock: world.clock };
  const vms = new Map<string, { readonly name: string; readonly since: number; alive: boolean }>();
  const truths = new Map<string, Truth>();
  const nowMs = () => world.now().getTime();
  let lagMs = 0;
  let checked = 0;

  function boot(name: string): void {
    if ([...vms.values()].some((vm) => vm.alive && vm.name === name)) return;
    const tags = { Name: name, ...MCM };
    const id = region.run({ name, tags: MCM, volumes: [{ tags }, { tags, deleteOnTermination: true }] });
    vms.set(id, { name, since: nowMs(), alive: true });
    const eni = region.createEni({ tags: { [CNI]: id } });
    region.attachEni(eni, id);
    const [kept] = region.instances.get(id)?.BlockDeviceMappings ?? [];
    truths.set(kept?.Ebs?.VolumeId ?? '', { owner: id, machine: name, kept: false, freeSince: undefined });
    truths.set(eni, { owner: id, machine: undefined, kept: false, freeSince: undefined });
  }

  function kill(name: string): void {
    for (const [id, vm] of vms) {
      if (!vm.alive || vm.name !== name) continue;
      vm.alive = false;
      region.terminate(id);
      for (const truth of truths.values()) if (truth.owner === id) truth.freeSince ??= nowMs();
    }
  }

  const nth = (index: number) => [...truths][index % Math.max(1, truths.size)] ?? [];

  function borrow(name: string, index: number): void {
    const [id, truth] = nth(index);
    const vm = [...vms].find(([, one]) => one.alive && one.name === name)?.[0];
    if (!id || !truth || !vm || truth.machine === undefined || region.volumes.get(id)?.State !== 'available') return;
    truth.borrower = vm;
    region.attachVolume(id, vm);
  }

  function giveBack(index: number): void {
    const [id, truth] = nth(index);
    if (id && truth?.borrower) region.detach(id, truth.borrower);
  }

  function detach(name: string): void {
    for (const [id, truth] of truths) {
      if (truth.machine !== name || !vms.get(truth.owner)?.alive || truth.freeSince !== undefined) continue;
      region.detach(id);
      truth.freeSince = nowMs();
    }
  }

  function keep(index: number): void {
    const [id, truth] = nth(index);
    if (!id || !truth) return;
    const row = region.volumes.get(id)?.Tags ?? region.enis.get(id)?.TagSet ?? [];
    region.tag(id, { ...Object.fromEntries(row.map(({ Key, Value }) => [Key, Value])), 'gleaner-keep': '' });
    truth.kept = true;
    // Nobody can heed a tag that the cloud does not show yet.
    world.advance(lagMs);
  }

  const isUsed = (id: string) =>
    region.volumes.get(id)?.State === 'in-use' || region.enis.get(id)?.Attachment !== undefined;
  const isOwned = ({ owner, machine }: Truth) =>
    vms.get(owner)?.alive === true ||
    [...vms.values()].some(({ name, alive, since }) => alive && name === machine && nowMs() - since >= lagMs);

  /** Every deletion since the last look, held against the truth. */
  function check(): void {
    for (const { operation, target, status, at } of world.requests.slice(checked)) {
      if (!operation.startsWith('Delete') || status !== 200) continue;
      const truth = truths.get(target);
      expect(truth, `${target} is none of what may ever go`).toBeDefined();
      if (!truth) continue;
      expect({ target, kept: truth.kept, owned: isOwned(truth) }).toEqual({ target, kept: false, owned: false });
      if (!truth.borrower)
        expect(at.getTime() - (truth.freeSince ?? Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(GRACE);
      truths.delete(target);
    }
    checked = world.requests.length;
  }

  async function deliver(twice: boolean): Promise<void> {
    for (const event of events.splice(0)) {
      for (const one of twice ? [event, event] : [event]) {
        for (const parsed of cloud.parseEvent(one)) {
          const handled = await vmEvent({ ...engine, queue }, parsed, enforce).catch(() => undefined);
          if (!handled || handled.result.laterMs !== undefined) events.push(event);
        }
      }
    }
  }

  async function work(): Promise<void> {
    for (const sent of queue.sent.splice(0)) {
      const done = await reap({ ...engine, queue }, sent.work as ReapWork, enforce).catch(() => undefined);
      if (!done) queue.sent.push(sent);
    }
  }

  async function play([what, ...args]: Step): Promise<void> {
    const [first, second, third] = args as readonly unknown[];
    if (what === 'boot') boot(`m-${first}`);
    if (what === 'kill') kill(`m-${first}`);
    if (what === 'borrow') borrow(`m-${first}`, second as number);
    if (what === 'return') giveBack(first as number);
    if (what === 'detach') detach(`m-${first}`);
    if (what === 'keep') keep(first as number);
    if (what === 'wait') world.advance((first as number) * MINUTE);
    if (what === 'lag') region.lagMs = lagMs = first ? LAG : 0;
    if (what === 'fail') {
      const denied = { kind: 'error', status: 403, code: 'UnauthorizedOperation', message: 'no' } as const;
      const fault = second === 'denied' ? denied : { kind: second as 'partial' | 'cut' };
      world.faults.inject(first as string, fault, { times: 1, skip: third as number });
    }
    // Carried out, and the answer lost.
    if (what === 'lose') world.faults.inject(first as string, { kind: 'drop' }, { times: 1 });
    if (what === 'events') await deliver(first as boolean);
    if (what === 'work') await work();
    if (what === 'sweep') await sweep(engine, 'sweep', {}, enforce);
    check();
  }

  /** Everything works again: what is truly left behind goes, all else is there, and each deletion has one record. */
  async function end(): Promise<void> {
    world.faults.clear();
    region.lagMs = lagMs = 0;
    for (let round = 0; round < 4; round += 1) {
      world.advance(31 * MINUTE);
      await sweep(engine, 'sweep', {}, enforce);
      check();
    }
    const isWanted = (truth: Truth) => truth.kept || isOwned(truth) || vms.get(truth.borrower ?? '')?.alive === true;
    const left = [...truths].filter(([id, truth]) => !isWanted(truth) && !isUsed(id)).map(([id]) => id);
    expect(left).toEqual([]);
    const there = [...truths.keys()].filter((id) => region.volumes.get(id) ?? region.enis.get(id));
    expect(there).toEqual([...truths.keys()]);
    const deleted = world.requests.filter(({ operation, status }) => operation.startsWith('Delete') && status === 200);
    const records = await history(new Ledger(store), 1000);
    expect(records.map(({ id }) => id).sort()).toEqual([...new Set(deleted.map(({ target }) => target))].sort());
  }

  return { play, end, close: simulator.close };
}

it('deletes nothing wrongly and leaves nothing, whatever happens to VMs, events and answers', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 40 }), async (steps) => {
    const at = await stage();
    try {
      for (const one of steps) await at.play(one);
      await at.end();
    } finally {
      await at.close();
    }
  });
  await fc.assert(property, { numRuns: Number(process.env.CHAOS_RUNS ?? 60) });
});
