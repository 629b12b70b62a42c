import type { CloudScope, ReadResult, ResourceId } from './ports.ts';
import type { Intent } from './records.ts';
import { reportItemSchema } from './report.ts';
import { messageOf, type Run, tell } from './run.ts';

/** An intent this old whose resource still stands belongs to a run that was ended before its delete. */
const ABANDONED_MS = 20 * 60_000;
const INTENT_BATCH = 200;

/**
 * Finishes the records of runs that were ended between an intent and its tombstone. First thing of every run that
 * writes, in observe as well: it deletes nothing, it finds out what happened.
 */
export async function finishIntents(run: Run, scope: CloudScope): Promise<void> {
  if (!run.writes) return;
  let batch: Intent[] = [];
  for await (const intent of run.ledger.openIntents(scope.id)) {
    batch.push(intent);
    if (batch.length < INTENT_BATCH) continue;
    await finishBatch(run, scope, batch);
    batch = [];
  }
  if (batch.length > 0) await finishBatch(run, scope, batch);
}

async function finishBatch(run: Run, scope: CloudScope, intents: readonly Intent[]): Promise<void> {
  for (const type of scope.types) {
    const ofType = intents.filter(({ item }) => item.type === type.name);
    if (ofType.length === 0) continue;
    const ids: ResourceId[] = ofType.map(({ resourceKey, item }) => ({
      key: resourceKey,
      id: item.id,
      type: type.name,
    }));
    let reads: Map<string, ReadResult>;
    try {
      reads = await type.get(ids, run.signal);
    } catch (error) {
      run.log.warn({ type: type.name, error: messageOf(error) }, 'open deletions not looked at');
      continue;
    }
    for (const intent of ofType) {
      const read = reads.get(intent.resourceKey);
      if (read?.status === 'gone') await completeIntent(run, scope, intent);
      if (read?.status === 'found' && read.resource.state !== 'deleting') await dropIfAbandoned(run, scope, intent);
    }
  }
}

/** The resource of an open intent is gone: the deletion happened, and its record is completed with what the intent holds. */
export async function completeIntent(run: Run, scope: CloudScope, intent: Intent): Promise<void> {
  const tombstone = { ...intent.item, at: intent.at.toISOString(), completedBy: run.runId };
  const first = await run.ledger.completed(scope.id, intent.resourceKey, tombstone, intent.at, run.policy.retention);
  await run.ledger.unmark(scope.id, intent.resourceKey);
  await run.ledger.unclaim(scope.id, intent.resourceKey);
  if (!first) return;
  const item = reportItemSchema.parse(intent.item);
  run.report.add({ ...item, evidence: [...item.evidence, 'record of an ended run completed'] });
  await tell(run, { type: 'resource-deleted', detail: tombstone });
}

async function dropIfAbandoned(run: Run, scope: CloudScope, intent: Intent): Promise<void> {
  if (run.clock.now().getTime() - intent.at.getTime() < ABANDONED_MS) return;
  await run.ledger.withdrawn(scope.id, intent.resourceKey);
}
