import { describe, expect, it } from 'vitest';
import { reap, sweep } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { SimClock } from '../../simulator/world/clock.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { AT_ONCE, cloudError, delegate, enforce, MINUTE, START, TestQueue, testEngine } from '../support/run.ts';

const NEXT_HOUR = new Date(START.getTime() + 60 * MINUTE);
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

function estate(disks: number): FakeCloud {
  const cloud = new FakeCloud();
  for (let i = 0; i < disks; i += 1) cloud.disk(`d${i}`);
  return cloud;
}

const workOf = (cloud: FakeCloud): ReapWork => ({
  kind: 'reap',
  runId: 'r',
  scopeId: 'fake:here',
  notBefore: START.toISOString(),
  attempt: 0,
  items: [...cloud.resources.values()].map(({ key, id, type }) => ({ key, id, type })),
});

// The fake cloud rechecks two at a time, and has two such batches under way.
describe('batches of a reap', () => {
  it('are read again one after another, so that a later one shows what changed while an earlier one was deleted', async () => {
    const cloud = estate(8);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    cloud.before = (call) => {
      if (call !== 'delete disk') return;
      cloud.change('d6', { tags: { vm: 'vm-1', 'gleaner-keep': '' } });
      cloud.change('d7', { state: 'attached', attachedTo: ['vm-9'] });
    };
    const { report } = await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted.sort()).toEqual(['d0', 'd1', 'd2', 'd3', 'd4', 'd5']);
    expect(report.items.find(({ id }) => id === 'd6')).toMatchObject({ verdict: 'keep', reason: 'opted-out' });
    expect(report.items.find(({ id }) => id === 'd7')).toMatchObject({ verdict: 'keep', reason: 'attached' });
  });

  it('ask once for an owner that several of them share', async () => {
    const cloud = estate(8);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE, new TestQueue());
    cloud.before = (call) => (call === 'lookup' ? tick() : undefined);
    const report = await reap(engine, workOf(cloud), enforce);
    expect(report.counts.deleted).toBe(8);
    expect(cloud.calls.lookup).toBe(1);
  });

  it('take no more of the budget together than there is', async () => {
    const cloud = estate(8);
    const slow = new MemoryLedger();
    const store = delegate(slow, { put: async (...args) => tick().then(() => slow.put(...args)) });
    const engine = testEngine(cloud, store, { ...AT_ONCE, budget: { perRun: 3 } }, new TestQueue());
    const report = await reap(engine, workOf(cloud), enforce);
    expect(report.counts).toMatchObject({ deleted: 3, deferred: 5 });
    expect(cloud.deleted.length).toBe(3);
  });

  it('give back what they did not use to the hour that it came from', async () => {
    const cloud = estate(2);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE, new TestQueue());
    const ledger = new Ledger(engine.store);
    cloud.before = async (call) => {
      if (call !== 'delete disk') return;
      if (engine.clock.now() < NEXT_HOUR) {
        engine.clock.advance(NEXT_HOUR.getTime() - START.getTime());
        await ledger.spend(engine.clock.now(), 5, 1000);
      }
      throw cloudError('locked');
    };
    await reap(engine, workOf(cloud), enforce);
    expect([await ledger.spentThisHour(START), await ledger.spentThisHour(NEXT_HOUR)]).toEqual([0, 5]);
  });

  it('end before the run does when one of them fails, each deletion with its record', async () => {
    const cloud = estate(12);
    const memory = new MemoryLedger();
    let reads = 0;
    const store = delegate(memory, {
      getMany: (keys) => {
        reads += 1;
        return reads === 3 ? Promise.reject(new Error('the ledger is away')) : memory.getMany(keys);
      },
    });
    const engine = testEngine(cloud, store, AT_ONCE, new TestQueue());
    cloud.before = (call) => (call === 'delete disk' ? tick() : undefined);
    await expect(reap(engine, workOf(cloud), enforce)).rejects.toThrow('the ledger is away');
    const ended = [...cloud.deleted];
    expect(ended.length).toBe(2);
    await tick();
    await tick();
    expect(cloud.deleted).toEqual(ended);
    const records = await history(new Ledger(memory), 10);
    expect(records.map(({ id }) => id).sort()).toEqual(ended.sort());
  });

  it.each([
    [1, 'is still taken for gone', ['d0'], 1],
    [3, 'is asked for again, and found made anew', [], 2],
  ])('%i minutes after its owner was found gone, it %s', async (minutes, _, deleted, lookups) => {
    const cloud = estate(1);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    cloud.before = (call) => {
      if (call !== 'get disk') return;
      engine.clock.advance(minutes * MINUTE);
      cloud.vm('vm-1');
    };
    await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(deleted);
    expect(cloud.calls.lookup).toBe(lookups);
  });

  it('are told of one by one when the run is told to stop: what was begun is done, the rest deferred', async () => {
    const cloud = estate(12);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE);
    const stop = new AbortController();
    cloud.before = async (call) => {
      if (call !== 'delete disk') return;
      await tick();
      stop.abort();
    };
    const { report } = await sweep(engine, 'sweep', {}, { ...enforce, signal: stop.signal });
    expect(report.counts).toMatchObject({ listed: 12, failed: 0 });
    expect(report.counts.deleted).toBe(cloud.deleted.length);
    expect(cloud.deleted.length).toBeGreaterThan(0);
    expect(report.counts.deleted + report.counts.deferred).toBe(12);
    expect(report).toMatchObject({ stoppedBy: 'time', errors: [] });
    expect(report.items).toHaveLength(12);
    const records = await history(new Ledger(engine.store), 100);
    expect(records.map(({ id }) => id).sort()).toEqual(cloud.deleted.sort());
  });

  it('whose message names the key of one and the id of another, or a type that it has not, are refused whole', async () => {
    const cloud = estate(2);
    const engine = testEngine(cloud, new MemoryLedger(), AT_ONCE, new TestQueue());
    const [first, second] = workOf(cloud).items as [ReapWork['items'][0], ReapWork['items'][0]];
    for (const item of [
      { ...first, id: second.id },
      { ...first, type: 'fake-nic' },
      { ...first, type: 'nothing' },
    ])
      await expect(reap(engine, { ...workOf(cloud), items: [item] }, enforce)).rejects.toThrow(
        / is not fake:d0 of type /,
      );
    expect(cloud.calls).toEqual({});
  });

  it('that another run deleted between their look and their intent are neither deleted nor recorded again', async () => {
    const cloud = estate(1);
    const memory = new MemoryLedger(new SimClock(START));
    const other = testEngine(cloud, memory, AT_ONCE);
    let engine = other;
    let met = false;
    const store = delegate(memory, {
      put: async (...args) => {
        if (args[0].partition.startsWith('intent') && !met) {
          met = true;
          for (const { clock } of [other, engine]) clock.advance(1000);
          await sweep(other, 'sweep', {}, enforce);
        }
        return memory.put(...args);
      },
    });
    engine = testEngine(cloud, store, AT_ONCE);
    const { report } = await sweep(engine, 'sweep', {}, enforce);
    expect(cloud.deleted).toEqual(['d0']);
    expect(report.counts.deleted).toBe(0);
    expect(await history(new Ledger(memory), 10)).toHaveLength(1);
    const open = await Array.fromAsync(new Ledger(memory).openIntents('fake:here'));
    expect(open).toEqual([]);
  });
});
