import pMap from 'p-map';
import { giveBackBudget, takeBudget, untilNextHour } from './budget.ts';
import { chunks } from './chunks.ts';
import { asCloudError, CloudError, isRetryable } from './errors.ts';
import { type Judged, judgeAfresh, type Later } from './look.ts';
import type { Resource } from './model.ts';
import { OwnerBook } from './owner-book.ts';
import type { CloudScope, ResourceId, ResourceType } from './ports.ts';
import type { Tombstone } from './records.ts';
import { toReportItem } from './report.ts';
import { hasTime, messageOf, type Run, tell } from './run.ts';

/** A delete with its retries over dead connections, and its records; a run that has less time left does not begin one. */
const DELETE_MS = 90_000;
/** A deletion that was begun is followed to its end, though the run is told to stop: otherwise nobody knows what became of it. */
const TO_ITS_END = new AbortController().signal;
const SNAPSHOT_RETRY_MS = 60_000;

export interface ReapOptions {
  readonly eventTime?: Date;
  /** Answers about owners from the look that led here. */
  readonly book?: OwnerBook;
  /** Verdicts of the look that led here, by key: what is told of those that are not even looked at again. */
  readonly judged?: ReadonlyMap<string, Judged>;
}

/**
 * Rechecks and deletes: reads every resource again, judges it again on what that read shows, writes the intent, deletes,
 * completes the record. The only caller of `delete`. Types in the scope's order; one item's failure stops no other.
 * Every item ends in the report; the returned ones may be tried again.
 */
export async function reapItems(
  run: Run,
  scope: CloudScope,
  items: readonly ResourceId[],
  options: ReapOptions = {},
): Promise<Later[]> {
  const book = options.book ?? new OwnerBook(scope.owners, run.clock);
  const later: Later[] = [];
  for (const type of scope.types) {
    const ofType = items.filter((item) => item.type === type.name);
    later.push(...(await reapType(run, scope, type, ofType, { ...options, book })));
  }
  return later;
}

/** Batches side by side. One that fails lets those that are on their way end, so that nothing is deleted behind the run's back. */
async function reapType(
  run: Run,
  scope: CloudScope,
  type: ResourceType,
  items: readonly ResourceId[],
  options: ReapOptions & { book: OwnerBook },
): Promise<Later[]> {
  const batches = chunks(items, scope.recheckBatch);
  const errors: unknown[] = [];
  const reapUnlessFailed = async (batch: readonly ResourceId[]): Promise<Later[]> => {
    if (errors.length > 0) return [];
    try {
      return await reapBatch(run, scope, type, batch, options);
    } catch (error) {
      errors.push(error);
      return [];
    }
  };
  const concurrency = Math.max(1, Math.floor(scope.deleteConcurrency / scope.recheckBatch));
  const later = await pMap(batches, reapUnlessFailed, { concurrency });
  if (errors.length > 0) throw errors[0];
  return later.flat();
}

async function reapBatch(
  run: Run,
  scope: CloudScope,
  type: ResourceType,
  items: readonly ResourceId[],
  options: ReapOptions & { book: OwnerBook },
): Promise<Later[]> {
  if (!hasTime(run, DELETE_MS)) {
    run.report.stop('time');
    return items.map((item) => unbegun(run, item, options.judged?.get(item.key)));
  }
  const lookedAt = run.clock.now();
  const looked = await judgeAfresh(run, scope, type, items, options);
  const orphans = looked.judged.filter(({ verdict }) => verdict.verdict === 'reap');
  for (const { resource, verdict } of looked.judged) {
    if (verdict.verdict !== 'reap') run.report.item(resource, verdict, 'none');
  }
  const later: Later[] = [...looked.later];
  if (run.mode !== 'enforce') {
    for (const { resource, verdict } of orphans) run.report.item(resource, verdict, 'would-delete');
    return later;
  }
  const grant = await takeBudget(run, orphans.length);
  for (const { resource, verdict } of orphans.slice(grant.count)) {
    run.report.stop('budget');
    run.report.item(resource, verdict, 'deferred', ['budget used up']);
    later.push({ item: idOf(resource), afterMs: untilNextHour(run), patient: true, reason: 'budget' });
  }
  const results = await pMap(orphans.slice(0, grant.count), (orphan) => deleteOne(run, scope, type, orphan, lookedAt), {
    concurrency: scope.deleteConcurrency,
  });
  const unused = results.filter(({ deleted }) => !deleted).length;
  if (unused > 0) await giveBackBudget(run, grant, unused);
  return [...later, ...results.flatMap((result) => result.later ?? [])];
}

function unbegun(run: Run, item: ResourceId, judged: Judged | undefined): Later {
  const reason = 'no time left';
  if (judged) run.report.item(judged.resource, judged.verdict, 'deferred', [reason]);
  return { item, afterMs: 0, patient: true, reason };
}

interface Deleted {
  readonly deleted: boolean;
  readonly later?: Later;
}

/** Never throws: an unexpected error here must not leave siblings half done. */
async function deleteOne(
  run: Run,
  scope: CloudScope,
  type: ResourceType,
  orphan: Judged,
  lookedAt: Date,
): Promise<Deleted> {
  const { resource } = orphan;
  try {
    if (!hasTime(run, DELETE_MS)) {
      run.report.stop('time');
      return defer(run, orphan, 0, true, 'no time left');
    }
    const snapshot = await snapshotFirst(run, scope, type, orphan);
    if (snapshot.pending)
      return defer(run, orphan, SNAPSHOT_RETRY_MS, true, `snapshot ${snapshot.id} is not completed`);
    const record = tombstoneOf(run, scope, orphan, snapshot.id);
    const intent = await run.ledger.intend(scope.id, resource.key, record, run.runId, run.clock.now());
    if (intent.own && (await wasDoneSince(run, scope, orphan, lookedAt))) return { deleted: false };
    const error = await attempt(() => type.delete(resource, TO_ITS_END), `delete ${type.name}`);
    if (error) return await notDeleted(run, scope, orphan, error, intent.own);
    await recordDeleted(run, scope, orphan, record, intent.at);
    return { deleted: true };
  } catch (cause) {
    const error = asCloudError(cause, `reap ${type.name}`);
    return fail(run, orphan, error);
  }
}

/** Another run deleted and recorded it after this one had looked: to delete it again would succeed, and be a second record. */
async function wasDoneSince(run: Run, scope: CloudScope, orphan: Judged, lookedAt: Date): Promise<boolean> {
  const { resource, verdict } = orphan;
  const doneAt = await run.ledger.doneAt(scope.id, resource.key);
  if (!doneAt || doneAt <= lookedAt) return false;
  await run.ledger.withdrawn(scope.id, resource.key);
  run.report.item(resource, verdict, 'none', ['recorded by another run']);
  return true;
}

async function attempt(call: () => Promise<void>, operation: string): Promise<CloudError | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return asCloudError(error, operation);
  }
}

/** The deletion happened. Whatever goes wrong from here on is the record's, which the intent keeps safe for the next run. */
async function recordDeleted(
  run: Run,
  scope: CloudScope,
  orphan: Judged,
  record: Tombstone,
  intendedAt: Date,
): Promise<void> {
  const { resource, verdict } = orphan;
  try {
    const at = run.clock.now();
    const tombstone = { ...record, at: at.toISOString() };
    const first = await run.ledger.completed(scope.id, resource.key, tombstone, intendedAt, run.policy.retention);
    if (first) await tell(run, { type: 'resource-deleted', detail: tombstone });
    if (orphan.mark || run.policy.snapshot !== 'never') await run.ledger.unmark(scope.id, resource.key);
    if (orphan.claim) await run.ledger.unclaim(scope.id, resource.key);
    run.report.item(resource, verdict, first ? 'deleted' : 'none', first ? [] : ['recorded by another run']);
  } catch (error) {
    run.report.item(resource, verdict, 'deleted', ['the next run completes its record']);
    run.report.error(asCloudError(error, 'ledger'));
    run.log.error({ id: resource.id, error: messageOf(error) }, 'deleted, record left open');
  }
}

async function notDeleted(
  run: Run,
  scope: CloudScope,
  orphan: Judged,
  error: CloudError,
  isOwnIntent: boolean,
): Promise<Deleted> {
  // After a time-out or a broken connection nobody knows whether it happened: the intent stays for the next run to find out.
  const undecided = error.code === 'unavailable' || error.code === 'unknown';
  // Another run's intent is that run's: it may have deleted meanwhile, and its record hangs on it.
  if (!undecided && isOwnIntent) await run.ledger.withdrawn(scope.id, orphan.resource.key);
  if (!isRetryable(error.code)) return fail(run, orphan, error);
  run.report.error(error);
  return defer(run, orphan, error.retryAfterMs ?? 60_000, false, `${error.code}: ${messageOf(error)}`);
}

function fail(run: Run, { resource, verdict }: Judged, error: CloudError): Deleted {
  run.report.error(error);
  run.report.item(resource, verdict, 'failed', [`${error.code}: ${messageOf(error)}`]);
  run.log.error({ id: resource.id, code: error.code, error: messageOf(error) }, 'not deleted');
  return { deleted: false };
}

function defer(run: Run, { resource, verdict }: Judged, afterMs: number, patient: boolean, reason: string): Deleted {
  run.report.item(resource, verdict, 'deferred', [reason]);
  return { deleted: false, later: { item: idOf(resource), afterMs, patient, reason } };
}

/**
 * The snapshot that protects this very deletion: its token names the sighting that led here, so that one of an earlier
 * life of the disk, before it was used again, is never taken for it.
 */
async function snapshotFirst(
  run: Run,
  scope: CloudScope,
  type: ResourceType,
  orphan: Judged,
): Promise<{ id?: string; pending: boolean }> {
  const { resource, verdict, mark } = orphan;
  if (run.policy.snapshot !== 'before-delete' || resource.kind !== 'disk') return { pending: false };
  if (!type.snapshot) {
    const message = `policy asks for snapshots, which ${type.name} does not have`;
    throw new CloudError({ code: 'invalid', nativeCode: 'SnapshotUnsupported', operation: 'snapshot', message });
  }
  const firstSeen = mark?.firstSeen ?? verdict.orphanSince ?? run.clock.now();
  // The next look must find the snapshot that this one starts.
  if (!mark) await run.ledger.mark(scope.id, resource, firstSeen, run.clock.now());
  const { id, state } = await type.snapshot(resource, `${resource.id}-${firstSeen.getTime()}`, run.signal);
  if (state === 'failed') {
    const message = `snapshot ${id} failed: the disk stays`;
    throw new CloudError({ code: 'unknown', nativeCode: 'SnapshotFailed', operation: 'snapshot', message });
  }
  return { id, pending: state !== 'completed' };
}

const idOf = ({ key, id, type }: Resource): ResourceId => ({ key, id, type });

/** What history shows and restore needs. */
function tombstoneOf(
  run: Run,
  scope: CloudScope,
  { resource, verdict }: Judged,
  snapshotId: string | undefined,
): Tombstone {
  return {
    ...toReportItem(resource, verdict, 'deleted'),
    runId: run.runId,
    scopeId: scope.id,
    type: resource.type,
    key: resource.key,
    place: resource.place,
    tags: { ...resource.tags },
    sizeGiB: resource.sizeGiB ?? null,
    restore: resource.restore ? { ...resource.restore } : null,
    snapshotId: snapshotId ?? null,
  };
}
