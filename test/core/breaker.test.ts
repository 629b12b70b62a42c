import { describe, expect, it } from 'vitest';
import { reap, sweep, vmEvent } from '../../shared/core/engine.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import { exitCodeOf } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { AT_ONCE, died, enforce, MINUTE, START, TestQueue, testEngine } from '../support/run.ts';

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
