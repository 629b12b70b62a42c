import { describe, expect, it } from 'vitest';
import { sweep, vmEvent } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { exitCodeOf, type Report, reportSchema } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { AT_ONCE, cloudError, delegate, died, enforce, MINUTE, reasons, testEngine } from '../support/run.ts';

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

  it('takes a cluster to narrow the policy, never to widen it', async () => {
    const cloud = new FakeCloud();
    const tags = (cluster: string) => ({ vm: 'vm-1', [`kubernetes.io/cluster/${cluster}`]: '1' });
    for (const name of ['a', 'b', 'c']) cloud.disk(`d-${name}`, { tags: tags(name) });
    const engine = testEngine(cloud, new MemoryLedger(), { ...AT_ONCE, clusters: ['a', 'b'] });
    await expect(sweep(engine, 'sweep', { cluster: 'c' }, enforce)).rejects.toMatchObject({ field: 'cluster' });
    expect(cloud.calls).toEqual({});
    await sweep(engine, 'sweep', { cluster: 'b' }, enforce);
    expect(cloud.deleted).toEqual(['d-b']);
  });

  it('refuses a policy that asks for snapshots where a cloud has none, before it looks at anything', async () => {
    const cloud = new FakeCloud();
    cloud.disk('d1');
    cloud.offersSnapshots = false;
    const run = (policy: object, verb: 'plan' | 'sweep' = 'sweep') =>
      sweep(testEngine(cloud, new MemoryLedger(), { ...AT_ONCE, ...policy }), verb, {}, enforce);
    await expect(run({ snapshot: 'before-delete' })).rejects.toMatchObject({ field: 'policy.snapshot' });
    await expect(run({ snapshot: 'before-delete' }, 'plan')).rejects.toMatchObject({ field: 'policy.snapshot' });
    expect(cloud.calls).toEqual({});
    expect((await run({ snapshot: 'before-delete', kinds: ['nic'] })).report.counts.listed).toBe(0);
  });
});
