import { describe, expect, it } from 'vitest';
import { reap, vmEvent } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { ReapWork } from '../../shared/core/ports.ts';
import { MAX_ATTEMPTS } from '../../shared/core/worker.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { AT_ONCE, cloudError, died, enforce, MINUTE, observe, START, TestQueue, testEngine } from '../support/run.ts';

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
