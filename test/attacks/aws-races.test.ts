import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sweep } from '../../shared/core/engine.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { delegate } from '../support/run.ts';
import { AT_ONCE, CNI, DEAD, enforce, MCM, MINUTE, nic, Stage, verdicts, vol } from './support.ts';

let s: Stage;
beforeEach(async () => {
  s = await Stage.start();
});
afterEach(() => s.close());

/** Runs once, when the `n`th request of that operation comes in. */
const once = (operation: string, n: number, act: () => void) => {
  let seen = 0;
  s.onRequest = (one) => {
    if (one !== operation) return;
    seen += 1;
    if (seen === n) act();
  };
};

describe('between the look and the deletion', () => {
  it('R1b the same, minutes apart: a sweep whose listing of the other type is slow', async () => {
    const id = s.region.createEni({ tags: MCM('web-1') });
    // Owners are asked when all is listed; then 4 minutes pass (say, deletions of 200 ENIs at a throttled pace).
    once('DescribeNetworkInterfaces', 2, () => {
      s.world.clock.advance(4 * MINUTE);
      s.region.run({ tags: MCM('web-1') });
    });
    await s.run();
    expect(s.region.enis.get(id)).toBeDefined();
  });
  it('R2 attached between reread and delete: EC2 refuses', async () => {
    const id = s.region.createVolume({ tags: MCM('web-1') });
    const vm = s.region.run();
    once('DeleteVolume', 1, () => s.region.attachVolume(id, vm));
    await s.run();
    expect(s.region.volumes.get(id)?.Attachments).toHaveLength(1);
  });
  it('R3 opt-out tag set between listing and reread', async () => {
    const id = s.region.createVolume({ tags: MCM('web-1') });
    once('DescribeVolumes', 2, () => s.region.tag(id, { ...MCM('web-1'), 'gleaner-keep': '' }));
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('R6 owner tag changed to a living one between listing and reread', async () => {
    const vm = s.region.run();
    const id = s.region.createVolume({ tags: { 'gleaner-owner': DEAD } });
    once('DescribeVolumes', 2, () => s.region.tag(id, { 'gleaner-owner': vm }));
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('R7 becomes multi-attach / persistent between listing and reread', async () => {
    const id = s.region.createVolume({ tags: MCM('x') });
    once('DescribeVolumes', 2, () => s.region.tag(id, { ...MCM('x'), 'kubernetes.io/created-for/pvc/name': 'd' }));
    await s.run();
    expect(s.region.volumes.get(id)).toBeDefined();
  });
  it('R8 two runs at once: one record of each, one notice', async () => {
    for (let i = 0; i < 30; i += 1) s.region.createVolume({ tags: MCM('web-1') });
    const engines = [s.engine(), s.engine()];
    await Promise.all(engines.map((engine) => sweep(engine, 'sweep', {}, enforce)));
    const tombstones = await Array.fromAsync(new Ledger(s.store).tombstones());
    expect(tombstones).toHaveLength(30);
    expect(new Set(tombstones.map(({ id }) => id)).size).toBe(30);
    expect(engines.flatMap(({ notices }) => notices).filter(({ type }) => type === 'resource-deleted')).toHaveLength(
      30,
    );
  });
  it('R9 listing: a page token that repeats, or a partial listing, deletes nothing unlisted', async () => {
    const vm = s.region.run();
    s.region.createVolume({ tags: { 'gleaner-owner': vm } });
    s.world.faults.inject('DescribeVolumes', { kind: 'partial' });
    await s.run();
    expect(s.deletes()).toEqual([]);
  });
  it('R10 the event of a VM that lives: nothing', async () => {
    const vm = s.region.run();
    s.region.createEni({ tags: { [CNI]: vm } });
    await s.event('deleted', vm, new Date(s.world.now().getTime() - 20 * MINUTE));
    expect(s.queue.sent).toEqual([]);
  });
  it('R11 a volume created after the event is kept by the deleter too', async () => {
    const at = s.world.now();
    s.world.advance(MINUTE);
    const id = s.region.createVolume({ tags: MCM('x') });
    s.world.advance(MINUTE);
    const report = await s.reap([vol(id)], AT_ONCE, { eventTime: at.toISOString() });
    expect(verdicts(report)).toEqual({ [id]: 'keep created-after-event none' });
  });
  it('R12b the same with the default policy: within minAge and grace', async () => {
    const vm = s.region.run({ tags: MCM('m-1') });
    s.region.terminate(vm);
    const at = s.world.now();
    s.world.advance(6 * MINUTE);
    const id = s.region.createEni({ tags: MCM('m-1') });
    await s.event('deleted', vm, at, {} as never);
    s.world.advance(20 * MINUTE);
    await s.reap([nic(id)], {}, { eventTime: at.toISOString() });
    expect(s.region.enis.get(id)).toBeDefined();
  });
});

describe('records', () => {
  it('D1 two runs; the second is throttled and withdraws the intent of the first, which dies after its delete', async () => {
    const id = s.region.createVolume({ tags: MCM('web-1') });
    let releaseA = () => {};
    const aDeleted = new Promise<void>((resolve) => (releaseA = resolve));
    // Run A: dies (never returns) when it comes to write the tombstone.
    const dying = delegate(s.store, {
      put: (key, ...rest) => {
        if (key.partition === 'tombstone') {
          releaseA();
          return new Promise(() => {});
        }
        return s.store.put(key, ...rest);
      },
    });
    // A intends and deletes only after B has adopted the intent and been refused.
    let bDone = () => {};
    const bWithdrew = new Promise<void>((resolve) => (bDone = resolve));
    const slow = delegate(dying, {
      put: async (key, ...rest) => {
        const version = await dying.put(key, ...rest);
        if (key.partition.startsWith('intent')) await bWithdrew;
        return version;
      },
    });
    void sweep(s.engine(AT_ONCE, slow), 'sweep', {}, enforce).catch(() => {});
    while ((await new Ledger(s.store).intent('aws:us-east-1', `aws:us-east-1:${id}`)) === undefined)
      await new Promise((resolve) => setTimeout(resolve, 10));
    s.world.faults.inject(
      'DeleteVolume',
      { kind: 'error', status: 400, code: 'IncorrectState', message: 'busy' },
      { times: 1 },
    );
    await s.reap([vol(id)]);
    bDone();
    await aDeleted;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(s.region.volumes.get(id)).toBeUndefined();
    s.world.advance(30 * MINUTE);
    await s.run();
    const tombstones = await Array.fromAsync(new Ledger(s.store).tombstones());
    expect(tombstones.map((one) => one.id)).toEqual([id]);
  });
  it('D2 the reread is partial while an intent is open: a deletion is recorded that never happened', async () => {
    const id = s.region.createVolume({ tags: MCM('web-1') });
    s.world.faults.inject('DeleteVolume', { kind: 'drop' }, { times: 5 });
    await s.run(); // undecided: the intent stays
    s.world.faults.clear();
    s.world.faults.inject('DescribeVolumes', { kind: 'partial' }, { times: 1 });
    await s.run({ ...AT_ONCE, budget: { perRun: 0 } });
    const tombstones = await Array.fromAsync(new Ledger(s.store).tombstones());
    expect({ there: s.region.volumes.get(id) !== undefined, recorded: tombstones.length }).not.toEqual({
      there: true,
      recorded: 1,
    });
  });
  it('D6b a corrupt claim without an owner keeps', async () => {
    const claimed = s.region.createVolume({ tags: MCM('web-1') });
    await s.store.put(
      { partition: 'claim|aws:us-east-1', sort: `aws:us-east-1:${claimed}` },
      { since: '2026-01-01T00:00:00.000Z' },
      new Date('2030-01-01'),
      'any',
    );
    await s.run();
    expect(s.region.volumes.get(claimed)).toBeDefined();
  });
  it('D7 corrupt or future marks keep', async () => {
    const ids = [s.region.createVolume({ tags: MCM('a') }), s.region.createVolume({ tags: MCM('b') })];
    for (const [i, firstSeen] of ['nonsense', '2030-01-01T00:00:00.000Z'].entries())
      await s.store.put(
        { partition: 'mark|aws:us-east-1', sort: `aws:us-east-1:${ids[i]}` },
        { firstSeen, detachedAt: null },
        new Date('2031-01-01'),
        'any',
      );
    const report = await s.run();
    expect(Object.values(verdicts(report))).toEqual(['keep time-odd none', 'keep time-odd none']);
  });
  it('D9 corrupt budget row: grants nothing, and does not reset', async () => {
    for (let i = 0; i < 5; i += 1) s.region.createVolume({ tags: MCM('a') });
    const hour = s.world.now().toISOString().slice(0, 13);
    await s.store.put({ partition: 'budget', sort: hour }, { count: 'abc' }, new Date('2030-01-01'), 'any');
    await s.run({ ...AT_ONCE, budget: { perHour: 3 } });
    await s.run({ ...AT_ONCE, budget: { perHour: 3 } });
    expect(s.deletes().length).toBeLessThanOrEqual(3);
  });
  it('D10 unused budget given back in the next hour lets more than perHour through', async () => {
    // 10 fail across the hour's end, then 10 more are allowed than the new hour's budget.
    for (let i = 0; i < 40; i += 1) s.region.createVolume({ tags: MCM('a') });
    const policy = { ...AT_ONCE, budget: { perHour: 10 } };
    s.world.clock.advance(3_600_000 - (s.world.now().getTime() % 3_600_000) - 1000);
    s.world.faults.inject(
      'DeleteVolume',
      { kind: 'error', status: 400, code: 'DependencyViolation', message: 'x' },
      { times: 10 },
    );
    let crossed = false;
    const other = s.engine(policy);
    let between: Promise<unknown> = Promise.resolve();
    s.onRequest = (operation) => {
      if (operation !== 'DeleteVolume' || crossed) return;
      crossed = true;
      s.world.clock.advance(5000);
    };
    // While the failing run is under way in the new hour, another spends the new hour's budget.
    const ledger = new Ledger(s.store);
    const slow = delegate(s.store, {
      put: async (key, ...rest) => {
        if (key.partition === 'budget' && crossed) {
          s.world.faults.clear();
          crossed = false;
          s.onRequest = () => {};
          between = sweep(other, 'sweep', {}, enforce);
          await between;
        }
        return s.store.put(key, ...rest);
      },
    });
    await s.run(policy, {}, slow);
    await s.run(policy);
    const hour = s.world.now().toISOString().slice(0, 13);
    const done = s.deletes().filter(({ status, at }) => status === 200 && at.toISOString().startsWith(hour));
    expect(await ledger.spentThisHour(s.world.now())).toBeGreaterThanOrEqual(0);
    expect(done.length).toBeLessThanOrEqual(10);
  });
  it('D11 the ledger is down at the intent: nothing is deleted', async () => {
    s.region.createVolume({ tags: MCM('a') });
    const broken = delegate(s.store, {
      put: async (key, ...rest) =>
        key.partition.startsWith('intent') ? Promise.reject(new Error('down')) : s.store.put(key, ...rest),
    });
    await s.run(AT_ONCE, {}, broken);
    expect(s.deletes()).toEqual([]);
  });
  it('D12 the notice of a deletion is sent even where the mark cannot be removed afterwards', async () => {
    s.region.createVolume({ tags: MCM('a') });
    const policy = { minAge: '0', grace: '1m' };
    await s.run(policy);
    s.world.advance(2 * MINUTE);
    const broken = delegate(s.store, {
      delete: async (key, ...rest) =>
        key.partition.startsWith('mark') ? Promise.reject(new Error('down')) : s.store.delete(key, ...rest),
    });
    const engine = s.engine(policy, broken);
    await sweep(engine, 'sweep', {}, enforce);
    await sweep(s.engine(policy), 'sweep', {}, enforce);
    expect(engine.notices.filter(({ type }) => type === 'resource-deleted')).toHaveLength(1);
  });
});
