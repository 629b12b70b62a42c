import { describe, expect, it } from 'vitest';
import { reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { CloudError } from '../../shared/core/errors.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { VmEvent } from '../../shared/core/model.ts';
import type { LedgerStore, ReapWork } from '../../shared/core/ports.ts';
import { exitCodeOf, type Report, reportSchema } from '../../shared/core/report.ts';
import { MAX_ATTEMPTS } from '../../shared/core/worker.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { delegate, enforce, MINUTE, observe, START, TestQueue, testEngine } from '../support/run.ts';

const AT_ONCE = { grace: '0', minAge: '0' };
const reasons = (report: Report) =>
  Object.fromEntries(report.items.map(({ id, verdict, reason, outcome }) => [id, `${verdict} ${reason} ${outcome}`]));
const died = (vmId: string, time = START): VmEvent => ({
  eventId: `event-${vmId}`,
  cloud: 'fake',
  change: 'deleted',
  scopeId: 'fake:here',
  vmId,
  place: 'here',
  time,
});
const cloudError = (
  code: 'throttled' | 'in-use' | 'reserved' | 'locked' | 'denied' | 'unavailable',
  retryAfterMs?: number,
) => new CloudError({ code, nativeCode: code, operation: 'delete', message: code, retryAfterMs });

describe('sweep', () => {
  it('marks at the first sighting, deletes after the grace, records once, and finds nothing the third time', async () => {
    const cloud = new FakeCloud();
    cloud.disk('d1');
    cloud.nic('n1');
    const engine = testEngine(cloud, new MemoryLedger());
    const first = (await sweep(engine, 'sweep', {}, enforce)).report;
    expect(reasons(first)).toEqual({ n1: 'wait in-grace none', d1: 'wait in-grace none' });
    engine.clock.advance(29 * MINUTE);
    await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual([]);
    engine.clock.advance(1 * MINUTE);
    const third = (await sweep(engine, 'sweep', {}, enforce)).report;
    expect(third.counts).toMatchObject({ listed: 2, reap: 2, deleted: 2, failed: 0, deferred: 0 });
    expect(cloud.deleted).toEqual(['n1', 'd1']);
    const items = await history(new Ledger(engine.store), 10);
    expect(items.map(({ id }) => id).sort()).toEqual(['d1', 'n1']);
    expect(items[0]).toMatchObject({
      runId: third.runId,
      outcome: 'deleted',
      owner: { id: 'vm-1', state: 'gone', evidence: 'fake' },
    });
    expect(engine.notices.filter(({ type }) => type === 'resource-deleted')).toHaveLength(2);
    expect((await sweep(engine, 'sweep', {}, enforce)).report.counts.listed).toBe(0);
    expect(reportSchema.parse(third)).toEqual(third);
  });

  it('starts the grace anew after the resource was in use again', async () => {
    const cloud = new FakeCloud();
    cloud.nic('n1');
    const engine = testEngine(cloud, new MemoryLedger());
    await sweep(engine, 'sweep', {}, enforce);
    cloud.change('n1', { state: 'attached' });
    engine.clock.advance(20 * MINUTE);
    await sweep(engine, 'sweep', {}, enforce);
    cloud.change('n1', { state: 'free' });
    engine.clock.advance(20 * MINUTE);
    await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual([]);
    engine.clock.advance(30 * MINUTE);
    await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['n1']);
  });

  it('writes nothing in plan, in the cloud or in the ledger, and decides as enforce would', async () => {
    const cloud = new FakeCloud();
    for (const id of ['d1', 'd2', 'd3']) cloud.disk(id);
    cloud.disk('kept', { tags: { vm: 'vm-1', 'gleaner-keep': 'yes' } });
    const store = new MemoryLedger();
    const refuse = () => Promise.reject(new Error('a write in plan'));
    const watched = delegate(store, { put: refuse, delete: refuse });
    const planned = (
      await sweep(testEngine(cloud, watched, { ...AT_ONCE, budget: { perRun: 2 } }), 'plan', {}, enforce)
    ).report;
    expect(planned.complete).toBe(true);
    expect(cloud.deleted).toEqual([]);
    const swept = (await sweep(testEngine(cloud, store, { ...AT_ONCE, budget: { perRun: 2 } }), 'sweep', {}, enforce))
      .report;
    const decisions = (report: Report) =>
      report.items.map(({ id, verdict, reason }) => `${id} ${verdict} ${reason}`).sort();
    expect(decisions(swept)).toEqual(decisions(planned));
    expect(planned.counts).toMatchObject({ deleted: 0, deferred: 1 });
    expect(swept.counts).toMatchObject({ deleted: 2, deferred: 1 });
    expect([exitCodeOf(planned), exitCodeOf(swept)]).toEqual([3, 3]);
  });

  it('deletes nothing of a type whose listing broke, and goes on with the others', async () => {
    const cloud = new FakeCloud();
    for (const id of ['d1', 'd2', 'd3']) cloud.disk(id);
    cloud.nic('n1');
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    let pages = 0;
    cloud.before = (call) => {
      if (call === 'list disk' && ++pages === 2) throw cloudError('denied');
    };
    const { report } = await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['n1']);
    expect(report).toMatchObject({ complete: false, errors: [{ code: 'denied', operation: 'delete' }] });
    expect(reasons(report)).toMatchObject({ d1: 'reap orphan deferred', n1: 'reap orphan deleted' });
    expect(exitCodeOf(report)).toBe(1);
  });

  it('keeps what is judged anew just before deletion: attached, tagged, or claimed in between', async () => {
    const cloud = new FakeCloud();
    for (const id of ['d1', 'd2', 'd3', 'd4']) cloud.disk(id);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    cloud.before = (call) => {
      if (call !== 'get disk') return;
      cloud.change('d1', { state: 'attached', attachedTo: ['vm-9'] });
      cloud.change('d2', { tags: { vm: 'vm-1', 'gleaner-keep': '' } });
      cloud.resources.delete('fake:d3');
    };
    const { report } = await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['d4']);
    expect(reasons(report)).toEqual({
      d1: 'keep attached none',
      d2: 'keep opted-out none',
      d3: 'keep gone none',
      d4: 'reap orphan deleted',
    });
    expect(report.counts.failed).toBe(0);
  });

  it('never touches what a living VM claims, even where a tag names a dead one', async () => {
    const cloud = new FakeCloud();
    cloud.disk('d1', { tags: { vm: 'dead' } });
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    await vmEvent(engine, { ...died('vm-7'), change: 'started' }, enforce);
    cloud.vm('vm-7', ['d1']);
    await vmEvent(engine, { ...died('vm-7'), change: 'started' }, enforce);
    const { report } = await sweep(engine, 'sweep', {}, enforce);
    expect(reasons(report)).toEqual({ d1: 'keep owner-alive none' });
    expect(report.items[0]?.owner).toMatchObject({ id: 'vm-7', evidence: 'claim', state: 'alive' });
  });

  it('deletes by a claim what no tag attributes, but only where a controller tagged it', async () => {
    const cloud = new FakeCloud();
    cloud.disk('tagged', { tags: { 'karpenter.sh/nodepool': 'default' } });
    cloud.disk('bare', { tags: {} });
    cloud.vm('vm-7', ['tagged', 'bare']);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    await vmEvent(engine, { ...died('vm-7'), change: 'started' }, enforce);
    cloud.vms.delete('vm-7');
    await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['tagged']);
  });

  it('lets one failing item fail alone, and reports why', async () => {
    const cloud = new FakeCloud();
    for (const id of ['d1', 'd2', 'd3']) cloud.disk(id);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    cloud.before = (call, target) => {
      if (call === 'delete disk' && target === 'd1') throw cloudError('locked');
      if (call === 'delete disk' && target === 'd2') throw cloudError('throttled', 90_000);
    };
    const { report, later } = await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['d3']);
    expect(reasons(report)).toMatchObject({
      d1: 'reap orphan failed',
      d2: 'reap orphan deferred',
      d3: 'reap orphan deleted',
    });
    expect(later).toMatchObject([{ item: { id: 'd2' }, afterMs: 90_000, patient: false }]);
    expect(await history(new Ledger(engine.store), 10)).toHaveLength(1);
  });

  it('deletes a disk only after its snapshot has completed', async () => {
    const cloud = new FakeCloud();
    cloud.disk('d1');
    const engine = testEngine(cloud, new MemoryLedger(), { ...AT_ONCE, snapshot: 'before-delete' });
    const first = (await sweep(engine, 'sweep', {}, enforce)).report;
    expect(reasons(first)).toEqual({ d1: 'reap orphan deferred' });
    cloud.snapshots.set('d1', { id: 'snap-of-d1', state: 'failed' });
    expect(reasons((await sweep(engine, 'sweep', {}, enforce)).report)).toEqual({ d1: 'reap orphan failed' });
    cloud.snapshots.set('d1', { id: 'snap-of-d1', state: 'completed' });
    await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['d1']);
    expect((await history(new Ledger(engine.store), 1))[0]).toMatchObject({ snapshotId: 'snap-of-d1' });
  });

  it('never takes the snapshot of an earlier life for that of this one', async () => {
    const cloud = new FakeCloud();
    cloud.disk('d1');
    const engine = testEngine(cloud, new MemoryLedger(), { ...AT_ONCE, snapshot: 'before-delete' });
    await sweep(engine, 'sweep', {}, enforce);
    await sweep(engine, 'sweep', {}, enforce);
    expect(new Set(cloud.snapshotTokens).size).toBe(1);
    cloud.change('d1', { state: 'attached' });
    engine.clock.advance(MINUTE);
    await sweep(engine, 'sweep', {}, enforce);
    cloud.change('d1', { state: 'free' });
    await sweep(engine, 'sweep', {}, enforce);
    expect(new Set(cloud.snapshotTokens).size).toBe(2);
  });

  it('spends one budget an hour over all runs, and goes on in the next hour', async () => {
    const cloud = new FakeCloud();
    for (let i = 0; i < 7; i += 1) cloud.disk(`d${i}`);
    const engine = testEngine(cloud, new MemoryLedger(), { ...AT_ONCE, budget: { perRun: 3, perHour: 5 } });
    const run = async () => (await sweep(engine, 'sweep', {}, enforce)).report;
    expect((await run()).counts).toMatchObject({ deleted: 3, deferred: 4 });
    expect((await run()).counts).toMatchObject({ deleted: 2, deferred: 2 });
    const third = await run();
    expect(third).toMatchObject({ counts: { deleted: 0, deferred: 2 }, stoppedBy: 'budget' });
    engine.clock.advance(60 * MINUTE);
    expect((await run()).counts).toMatchObject({ deleted: 2 });
  });
});

describe('breaker', () => {
  async function cluster(size: number) {
    const cloud = new FakeCloud();
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    for (let i = 0; i < size; i += 1) {
      cloud.disk(`d${i}`, { tags: { vm: `vm-${i}` }, state: 'attached' });
      cloud.vm(`vm-${i}`, [`d${i}`]);
      await vmEvent(engine, { ...died(`vm-${i}`), change: 'started' }, enforce);
    }
    const kill = (count: number) => {
      for (let i = 0; i < count; i += 1) {
        cloud.vms.delete(`vm-${i}`);
        cloud.change(`d${i}`, { state: 'free' });
      }
    };
    return {
      cloud,
      engine,
      kill,
      run: async (more = {}) => (await sweep(engine, 'sweep', {}, { ...enforce, ...more })).report,
    };
  }

  it('stops when half of the owners known alive are gone at once', async () => {
    const { cloud, engine, kill, run } = await cluster(40);
    kill(20);
    const report = await run();
    expect(report).toMatchObject({ stoppedBy: 'breaker', counts: { reap: 20, deleted: 0, deferred: 20 } });
    expect(exitCodeOf(report)).toBe(3);
    expect(cloud.deleted).toEqual([]);
    expect(engine.notices.filter(({ type }) => type === 'breaker-tripped')).toHaveLength(1);
    // A look at one VM sees too little to release it.
    const narrow = (await sweep(engine, 'sweep', { vm: 'vm-1' }, enforce)).report;
    expect(narrow.stoppedBy).toBe('breaker');
    expect((await run()).stoppedBy).toBe('breaker');
    expect(cloud.deleted).toEqual([]);
  });

  it.each([
    ['fewer than 20', 30, 19],
    ['fewer than half', 60, 29],
  ])('lets %s go', async (_, size, dead) => {
    const { cloud, kill, run } = await cluster(size);
    kill(dead);
    expect((await run()).counts.deleted).toBe(dead);
    expect(cloud.deleted).toHaveLength(dead);
  });

  it('releases when the owners are back, after its hold, or by a person', async () => {
    for (const how of ['back', 'hold', 'person'] as const) {
      const { cloud, engine, kill, run } = await cluster(20);
      const alive = new Map(cloud.vms);
      kill(20);
      expect((await run()).stoppedBy).toBe('breaker');
      if (how === 'back') for (const [id, vm] of alive) cloud.vms.set(id, vm);
      if (how === 'hold') engine.clock.advance(24 * 60 * MINUTE);
      const report = await run({ releaseBreaker: how === 'person' });
      expect(report.stoppedBy).toBe(null);
      expect(cloud.deleted).toHaveLength(how === 'back' ? 0 : 20);
      expect(await new Ledger(engine.store).breaker('fake:here')).toBeUndefined();
    }
  });

  it('holds back what an event found as well', async () => {
    const { cloud, engine, kill, run } = await cluster(20);
    kill(20);
    await run();
    const queue = new TestQueue();
    const work: ReapWork = {
      kind: 'reap',
      runId: 'r',
      scopeId: 'fake:here',
      notBefore: START.toISOString(),
      attempt: 0,
      items: [{ key: 'fake:d1', id: 'd1', type: 'fake-disk' }],
    };
    const report = await reap({ ...engine, queue }, work, enforce);
    expect(report.stoppedBy).toBe('breaker');
    expect(cloud.deleted).toEqual([]);
    expect(queue.sent).toHaveLength(1);
  });
});

describe('vm event', () => {
  async function settled(policy = {}, mode = enforce as typeof enforce | typeof observe) {
    const cloud = new FakeCloud();
    const queue = new TestQueue();
    const engine = testEngine(cloud, new MemoryLedger(), policy, queue);
    const deliver = async (event = died('vm-1')) => (await vmEvent(engine, event, mode)).result;
    const workOff = async () => {
      const { work, delayMs } = queue.sent.shift() as { work: ReapWork; delayMs: number };
      engine.clock.advance(delayMs);
      return reap(engine, work, mode);
    };
    return { cloud, queue, engine, deliver, workOff };
  }

  it('waits for the settle time, finds, hands over, and the other function deletes after the grace', async () => {
    const { cloud, queue, engine, deliver, workOff } = await settled();
    cloud.nic('n1');
    cloud.disk('d1');
    expect(await deliver()).toEqual({ laterMs: 5 * MINUTE, due: [] });
    engine.clock.advance(5 * MINUTE);
    await deliver();
    expect(cloud.deleted).toEqual([]);
    expect(queue.sent).toMatchObject([
      { delayMs: 25 * MINUTE, work: { kind: 'reap', items: [{ id: 'n1' }, { id: 'd1' }] } },
    ]);
    const report = await workOff();
    expect(report.counts).toMatchObject({ deleted: 2 });
    expect(cloud.deleted).toEqual(['n1', 'd1']);
  });

  it('acts once on a doubled event', async () => {
    const { cloud, queue, engine, deliver, workOff } = await settled(AT_ONCE);
    cloud.nic('n1');
    engine.clock.advance(5 * MINUTE);
    await deliver();
    await deliver();
    while (queue.sent.length > 0) await workOff();
    expect(cloud.deleted).toEqual(['n1']);
    expect(await history(new Ledger(engine.store), 10)).toHaveLength(1);
    expect(engine.notices.filter(({ type }) => type === 'resource-deleted')).toHaveLength(1);
  });

  it('leaves a VM alone that is there again, and claims its things', async () => {
    const { cloud, queue, engine, deliver } = await settled(AT_ONCE);
    cloud.nic('n1');
    cloud.vm('vm-1', ['n1']);
    engine.clock.advance(120 * MINUTE);
    await deliver();
    expect(queue.sent).toEqual([]);
    const claims = await new Ledger(engine.store).claims('fake:here', ['fake:n1']);
    expect(claims.get('fake:n1')?.owner.value).toBe('vm-1');
  });

  it('looks again for a while at a VM that its own event says is gone', async () => {
    const { cloud, queue, engine, deliver } = await settled(AT_ONCE);
    cloud.nic('n1');
    cloud.vms.set('vm-1', { ...cloud.vm('vm-1'), createdAt: new Date(START.getTime() - MINUTE) });
    engine.clock.advance(5 * MINUTE);
    expect(await deliver()).toEqual({ laterMs: MINUTE, due: [] });
    engine.clock.advance(11 * MINUTE);
    expect(await deliver()).toEqual({ due: [] });
    expect(queue.sent).toEqual([]);
    expect(cloud.deleted).toEqual([]);
  });

  it('keeps what was made after the event', async () => {
    const { cloud, queue, engine, deliver, workOff } = await settled(AT_ONCE);
    cloud.disk('old');
    cloud.disk('new', { createdAt: new Date(START.getTime() + MINUTE) });
    engine.clock.advance(120 * MINUTE);
    await deliver();
    while (queue.sent.length > 0) await workOff();
    expect(cloud.deleted).toEqual(['old']);
  });

  it('credits a late event with no more grace than the settle time', async () => {
    const { cloud, queue, engine, deliver } = await settled();
    cloud.nic('n1');
    engine.clock.advance(120 * MINUTE);
    await deliver();
    expect(queue.sent).toMatchObject([{ delayMs: 25 * MINUTE }]);
  });

  it('deletes nothing in observe, and hands nothing over', async () => {
    const { cloud, queue, engine, deliver } = await settled(AT_ONCE, observe);
    cloud.nic('n1');
    engine.clock.advance(5 * MINUTE);
    await deliver();
    expect(queue.sent).toEqual([]);
    expect(cloud.deleted).toEqual([]);
  });

  it('comes back when one look failed, and does not lose the other', async () => {
    const { cloud, queue, engine, deliver } = await settled(AT_ONCE);
    cloud.nic('n1');
    cloud.disk('d1');
    cloud.before = (call) => {
      if (call === 'find disk') throw cloudError('throttled');
    };
    engine.clock.advance(5 * MINUTE);
    expect(await deliver()).toMatchObject({ laterMs: MINUTE });
    expect(queue.sent).toMatchObject([{ work: { items: [{ id: 'n1' }] } }]);
  });

  it('retries a reserved resource after what the cloud asks for, at least 200 s, and gives up at last', async () => {
    const { cloud, queue, engine, deliver, workOff } = await settled(AT_ONCE);
    cloud.nic('n1');
    cloud.before = (call) => {
      if (call === 'delete nic') throw cloudError('reserved', 180_000);
    };
    engine.clock.advance(5 * MINUTE);
    await deliver();
    await workOff();
    expect(queue.sent).toMatchObject([{ delayMs: 200_000, work: { attempt: 1 } }]);
    for (let tries = 2; tries <= MAX_ATTEMPTS; tries += 1) await workOff();
    expect(queue.sent).toEqual([]);
    expect(queue.dead).toMatchObject([
      { work: { items: [{ id: 'n1' }] }, reason: expect.stringContaining('reserved') },
    ]);
    expect(engine.notices.filter(({ type }) => type === 'item-given-up')).toHaveLength(1);
    expect(cloud.deleted).toEqual([]);
  });
});

describe('a process that is ended at any step', () => {
  // The store and the cloud survive; everything after the fatal step is lost with the process.
  const STEPS = ['get disk', 'put intent', 'delete disk', 'put tombstone', 'delete intent', 'delete mark'] as const;

  it.each(STEPS.flatMap((step) => [`before ${step}`, `after ${step}`]))(
    '%s: the next run finishes, and the record is one',
    async (where) => {
      const cloud = new FakeCloud();
      cloud.disk('d1');
      const store = new MemoryLedger();
      let dead = false;
      const fatal = async <T>(step: string, act: () => Promise<T>): Promise<T> => {
        if (dead || where === `before ${step}`) return die();
        const result = await act();
        return where === `after ${step}` ? die() : result;
      };
      const die = () => {
        dead = true;
        return new Promise<never>(() => {});
      };
      const nameOf = (partition: string) => partition.split('|')[0];
      const dying = delegate(store, {
        get: (...args: Parameters<LedgerStore['get']>) => fatal('get ledger', () => store.get(...args)),
        put: (...args: Parameters<LedgerStore['put']>) =>
          fatal(`put ${nameOf(args[0].partition)}`, () => store.put(...args)),
        delete: (...args: Parameters<LedgerStore['delete']>) =>
          fatal(`delete ${nameOf(args[0].partition)}`, () => store.delete(...args)),
      });
      // The mark of an earlier sighting, so that there is one to remove.
      await sweep(testEngine(cloud, store), 'sweep', {}, enforce);
      const first = testEngine(cloud, dying, AT_ONCE);
      const realScope = cloud.scope.bind(cloud);
      cloud.scope = () => {
        const scope = realScope();
        const types = scope.types.map((type) => ({
          ...type,
          get: (...args: Parameters<typeof type.get>) => fatal(`get ${type.kind}`, () => type.get(...args)),
          delete: (...args: Parameters<typeof type.delete>) => fatal(`delete ${type.kind}`, () => type.delete(...args)),
        }));
        return { ...scope, types };
      };
      first.clock.advance(MINUTE);
      await Promise.race([sweep(first, 'sweep', {}, enforce), new Promise((resolve) => setTimeout(resolve, 100))]);
      expect(dead).toBe(true);

      cloud.scope = realScope;
      const next = testEngine(cloud, store, AT_ONCE);
      next.clock.advance(2 * MINUTE);
      await sweep(next, 'sweep', {}, enforce);
      expect(cloud.deleted).toEqual(['d1']);
      const records = await history(new Ledger(store), 10);
      expect(records).toMatchObject([{ id: 'd1', outcome: 'deleted' }]);
      const open = [];
      for await (const intent of new Ledger(store).openIntents('fake:here')) open.push(intent);
      expect(open).toEqual([]);
    },
  );
});
