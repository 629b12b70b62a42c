import { breakerStands } from './breaker.ts';
import { chunks } from './chunks.ts';
import { finishIntents } from './intents.ts';
import type { Later } from './look.ts';
import { type Clock, type CloudScope, REAP_BATCH, type ReapWork, type ResourceId, type WorkQueue } from './ports.ts';
import { reapItems } from './reap.ts';
import { type Run, tell } from './run.ts';

/** Tries that fail before an item is given up: with the delays between them, longer than any reservation or attach lasts. */
export const MAX_ATTEMPTS = 8;
const BREAKER_RETRY_MS = 3_600_000;

/**
 * Deletes a batch that was handed over, and puts back what must wait. Waiting that the clock, the budget or a snapshot
 * asks for is no failed try; a cloud that keeps saying 'later' is, and after the last one the item goes to the
 * dead-letter queue, where an alarm watches.
 */
export async function workOff(run: Run, scope: CloudScope, work: ReapWork): Promise<void> {
  const queue = run.queue;
  if (!queue) throw new Error('workOff needs a queue to put back what must wait');
  const earlyMs = Date.parse(work.notBefore) - run.clock.now().getTime();
  if (earlyMs > 0) return queue.send(work, earlyMs);
  await finishIntents(run, scope);
  if (await breakerStands(run, scope)) return queue.send(work, BREAKER_RETRY_MS);
  // The queue is for what is put back: here is where the deleting is done.
  const later = await reapItems(
    run,
    scope,
    work.items.map((item) => identified(scope, item)),
    work.eventTime === undefined ? {} : { eventTime: new Date(work.eventTime) },
  );
  await putBack(run, work, later);
}

/** A message says of each item what its id says; one that does not was not written by a run, and is worked on by none. */
function identified(scope: CloudScope, { key, id, type }: ResourceId): ResourceId {
  const found = scope.identify(id);
  if (found && found.key === key && found.type === type) return found;
  throw new Error(`${id} is not ${key} of type ${type}`);
}

/** One message per delay; failed tries count on, patient ones do not. */
async function putBack(run: Run, work: ReapWork, later: readonly Later[]): Promise<void> {
  const groups = Map.groupBy(later, ({ afterMs, patient }) => `${afterMs}|${patient}`);
  for (const group of groups.values()) await putBackGroup(run, work, group);
}

async function putBackGroup(run: Run, work: ReapWork, group: readonly Later[]): Promise<void> {
  const { afterMs, patient, reason } = group[0] as Later;
  const attempt = patient ? work.attempt : work.attempt + 1;
  const notBefore = new Date(run.clock.now().getTime() + afterMs).toISOString();
  const items = group.map(({ item }) => item);
  const next: ReapWork = { ...work, attempt, notBefore, items };
  if (attempt < MAX_ATTEMPTS) return run.queue?.send(next, afterMs);
  run.report.givenUp += items.length;
  run.log.error({ ids: items.map(({ id }) => id), reason }, 'given up after the last try');
  await run.queue?.giveUp(next, reason);
  for (const { id } of items) {
    await tell(run, {
      type: 'item-given-up',
      detail: { runId: work.runId, scopeId: work.scopeId, id, reason, attempts: attempt },
    });
  }
}

/** What a run that deletes by itself must leave for later: into the queue, one message per scope and delay. */
export async function putBackLater(
  queue: WorkQueue,
  clock: Clock,
  runId: string,
  later: readonly (Later & { readonly scopeId: string })[],
): Promise<void> {
  const groups = Map.groupBy(later, ({ scopeId, afterMs }) => `${scopeId}|${afterMs}`);
  for (const group of groups.values()) {
    const { scopeId, afterMs } = group[0] as Later & { scopeId: string };
    const notBefore = new Date(clock.now().getTime() + afterMs).toISOString();
    for (const batch of chunks(group, REAP_BATCH)) {
      const items = batch.map(({ item }) => item);
      await queue.send({ kind: 'reap', runId, scopeId, notBefore, attempt: 1, items }, afterMs);
    }
  }
}
