import { randomUUID } from 'node:crypto';
import type { InvocationContext } from '@azure/functions';
import { sweep } from '../../shared/core/engine.ts';
import type { ScopeRequest, SweepWork } from '../../shared/core/ports.ts';
import { messageOf } from '../../shared/core/run.ts';
import { parseWork } from '../../shared/core/work.ts';
import { bodyOf, callOf, type Wired, wire } from './wire.ts';

/** Times that one sweep may go on in another call; one that never ends is an alarm, not a loop. */
const MAX_CONTINUATIONS = 5;

/** The timer: a message for each subscription, or each of its resource groups; then removes what expired from the ledger. */
export async function handler(_timer: unknown, context: InvocationContext): Promise<void> {
  const wired = wire(context);
  const { engine, environment } = wired;
  for (const request of requests(wired)) {
    await engine.queue.send({ kind: 'sweep', runId: randomUUID(), request, attempt: 0 }, 0);
  }
  engine.log.info({ subscriptions: environment.subscriptions.length }, 'sweeps handed over');
  await ledgerPurge(wired);
}

/** The queue of sweeps. Decides only; deletions go to the queue of the function that deletes. */
export async function work(message: unknown, context: InvocationContext): Promise<void> {
  const wired = wire(context);
  const { engine } = wired;
  const parsed = parseWork(bodyOf(message));
  if (parsed.kind !== 'sweep') throw new Error(`a ${parsed.kind} message in the queue of sweeps`);
  const { report } = await sweep(engine, 'sweep', parsed.request, { ...callOf(wired), runId: parsed.runId });
  if (report.stoppedBy !== 'time') return;
  const next: SweepWork = { ...parsed, attempt: parsed.attempt + 1 };
  if (next.attempt < MAX_CONTINUATIONS) return engine.queue.send(next, 0);
  engine.log.error({ runId: next.runId, attempts: next.attempt }, 'a sweep that does not end');
  await engine.queue.giveUp(next, 'a sweep that does not end');
}

function requests({ environment: { subscriptions, resourceGroups } }: Wired): ScopeRequest[] {
  return [...new Set(subscriptions)].flatMap((subscription): ScopeRequest[] => {
    const scopeIds = [`azure:${subscription}`];
    return resourceGroups?.map((resourceGroup) => ({ scopeIds, resourceGroup })) ?? [{ scopeIds }];
  });
}

/** Tables remove nothing by themselves. What could not be removed now is, an hour later; no sweep fails for it. */
async function ledgerPurge({ engine }: Wired): Promise<void> {
  try {
    engine.log.info({ purged: await engine.store.purge(engine.clock.now()) }, 'ledger purged');
  } catch (error) {
    engine.log.warn({ error: messageOf(error) }, 'ledger not purged');
  }
}
