import type { InvocationContext } from '@azure/functions';
import { vmEvent } from '../../shared/core/engine.ts';
import { CloudError } from '../../shared/core/errors.ts';
import type { VmEvent } from '../../shared/core/model.ts';
import type { EventWork } from '../../shared/core/ports.ts';
import { parseWork } from '../../shared/core/work.ts';
import { bodyOf, callOf, type Wired, wire } from './wire.ts';

/**
 * Event Grid's events of a subscription. Only enqueues: a deletion is looked into once the settle time has passed, a write
 * becomes a claim at once. An event carries its caller's personal data, so nothing of it is logged but the VM.
 * @throws InputError naming the field: Event Grid tries again, then dead-letters it
 */
export async function handler(event: unknown, context: InvocationContext): Promise<void> {
  const wired = wire(context);
  const { engine, environment } = wired;
  for (const one of engine.cloud.parseEvent(event)) {
    if (!covers(wired, one)) {
      engine.log.debug({ vm: one.vmId }, 'event of a resource group that is not covered');
      continue;
    }
    const settleMs = one.time.getTime() + environment.policy.settle - engine.clock.now().getTime();
    const work: EventWork = { kind: 'event', event: { ...one, time: one.time.toISOString() } };
    await engine.queue.send(work, one.change === 'deleted' ? settleMs : 0);
  }
}

/** The queue of VM events. What must be looked at again is put back before a message counts as done. */
export async function work(message: unknown, context: InvocationContext): Promise<void> {
  const wired = wire(context);
  const { engine } = wired;
  const parsed = parseWork(bodyOf(message));
  if (parsed.kind !== 'event') throw new Error(`a ${parsed.kind} message in the queue of events`);
  const event: VmEvent = { ...parsed.event, time: new Date(parsed.event.time) };
  let laterMs: number | undefined;
  try {
    laterMs = (await vmEvent(engine, event, callOf(wired))).result.laterMs;
  } catch (error) {
    if (!(error instanceof CloudError) || error.retryAfterMs === undefined) throw error;
    engine.log.warn({ vm: event.vmId, code: error.nativeCode }, 'event not handled yet');
    laterMs = error.retryAfterMs;
  }
  if (laterMs !== undefined) await engine.queue.send(parsed, laterMs);
}

/** A deployment for some resource groups may read no other, and must not fail on their events. */
function covers({ environment: { resourceGroups } }: Wired, { vmId }: VmEvent): boolean {
  const group = /\/resourceGroups\/([^/]+)\//i.exec(vmId)?.[1]?.toLowerCase();
  return resourceGroups === undefined || (group !== undefined && resourceGroups.includes(group));
}
