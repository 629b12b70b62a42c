import { attribute } from './attribution.ts';
import { asCloudError, isRetryable } from './errors.ts';
import { completeIntent } from './intents.ts';
import { judge } from './judge.ts';
import type { Claim, Mark, OwnerRef, Resource, Verdict } from './model.ts';
import type { OwnerBook } from './owner-book.ts';
import type { CloudScope, ReadResult, ResourceId, ResourceType } from './ports.ts';
import { messageOf, type Run } from './run.ts';

/** A resource with everything that names its owner, before anybody was asked about the owner. */
export interface Sighting {
  readonly resource: Resource;
  readonly claim?: Claim;
  readonly mark?: Mark;
  readonly refs: readonly OwnerRef[];
}

/** What could not be finished now and is worth another look. */
export interface Later {
  readonly item: ResourceId;
  readonly afterMs: number;
  /** True = the cloud or the clock said later; it does not count as a failed try. */
  readonly patient: boolean;
  readonly reason: string;
}

export interface Judged extends Omit<Sighting, 'refs'> {
  readonly verdict: Verdict;
}

/** Adds what the ledger knows; two batched reads for any number of resources. */
export async function sight(run: Run, scope: CloudScope, resources: readonly Resource[]): Promise<Sighting[]> {
  const keys = resources.map(({ key }) => key);
  const claims = await run.ledger.claims(scope.id, keys);
  const marks = await run.ledger.marks(scope.id, keys);
  return resources.map((resource) => {
    const claim = claims.get(resource.key);
    const { attributions } = attribute(resource, claim, scope, run.policy);
    return { resource, claim, mark: marks.get(resource.key), refs: attributions.map(({ ref }) => ref) };
  });
}

/** Judges a sighting on the answers in the book; an owner nobody was asked about is unknown. */
export function judgeSighting(
  run: Run,
  scope: CloudScope,
  sighting: Sighting,
  book: OwnerBook,
  eventTime?: Date,
): Verdict {
  const { resource, claim, mark } = sighting;
  const { attributions, unparsable } = attribute(resource, claim, scope, run.policy);
  const owners = attributions.map((attribution) => ({
    attribution,
    answer: book.answer(attribution.ref) ?? { state: 'unknown' as const, detail: 'not asked' },
  }));
  return judge({
    resource,
    owners,
    unparsable,
    candidate: scope.isCandidate(resource, run.policy.ownerTags),
    claim,
    mark,
    policy: run.policy,
    now: run.clock.now(),
    clusters: run.clusters,
    eventTime,
  });
}

/**
 * Asks about owners; whoever is alive has its attachments claimed, since the same answer shows them. Before any verdict,
 * so that the first sweep after a VM came to life already protects what is its.
 */
export async function askOwners(
  run: Run,
  scope: CloudScope,
  refs: readonly OwnerRef[],
  book: OwnerBook,
): Promise<void> {
  for (const answer of await book.ask(refs, run.signal)) {
    if (run.writes && answer.state === 'alive' && answer.vm)
      await run.ledger.sighted(scope.id, answer.vm, run.clock.now());
  }
}

/** Fresh reads and fresh verdicts right before deletion. What could not be read is reported here and, where it helps, comes back later. */
export async function judgeAfresh(
  run: Run,
  scope: CloudScope,
  type: ResourceType,
  items: readonly ResourceId[],
  options: { readonly eventTime?: Date; readonly book: OwnerBook },
): Promise<{ judged: Judged[]; later: Later[] }> {
  const reads = await readAll(run, type, items);
  const found: Resource[] = [];
  const later: Later[] = [];
  for (const item of items) {
    const read = reads.get(item.key);
    if (read?.status === 'found') found.push(read.resource);
    else if (read?.status === 'gone') await finishGone(run, scope, item);
    else later.push(...unread(run, scope, type, item, read?.status === 'failed' ? read.error : new Error('no answer')));
  }
  const sightings = await sight(run, scope, found);
  await askOwners(
    run,
    scope,
    sightings.flatMap(({ refs }) => refs),
    options.book,
  );
  const judged: Judged[] = [];
  for (const sighting of sightings) {
    const verdict = judgeSighting(run, scope, sighting, options.book, options.eventTime);
    await keepMark(run, scope, sighting, verdict);
    judged.push({ ...sighting, verdict });
    if (verdict.verdict === 'wait') later.push(dueLater(run, sighting.resource, verdict));
  }
  return { judged, later };
}

/** A resource that waits is marked at its first sighting; one that is kept loses its mark, so that its grace starts anew. */
export async function keepMark(
  run: Run,
  scope: CloudScope,
  { resource, mark }: Sighting,
  verdict: Verdict,
  firstSeen?: Date,
): Promise<void> {
  if (!run.writes) return;
  const now = run.clock.now();
  const stale = mark !== undefined && mark.detachedAt?.getTime() !== resource.detachedAt?.getTime();
  const waits = verdict.verdict === 'wait' && verdict.orphanSince !== undefined;
  if (waits && (!mark || stale)) await run.ledger.mark(scope.id, resource, firstSeen ?? now, now);
  // `changing` says nothing yet: the attach may fail. What is truly in use, owned or protected starts anew.
  if (verdict.verdict === 'keep' && mark) await run.ledger.unmark(scope.id, resource.key);
}

function dueLater(run: Run, { key, id, type }: Resource, verdict: Verdict): Later {
  const dueInMs = verdict.dueAt ? verdict.dueAt.getTime() - run.clock.now().getTime() : 60_000;
  return { item: { key, id, type }, afterMs: Math.max(0, dueInMs), patient: true, reason: verdict.reason };
}

/** Gone between two looks: done. If a deletion of it had been begun, this is where its record is completed. */
async function finishGone(run: Run, scope: CloudScope, item: ResourceId): Promise<void> {
  const intent = run.writes ? await run.ledger.intent(scope.id, item.key) : undefined;
  if (intent) return completeIntent(run, scope, intent);
  run.report.item(
    placeholder(scope, item),
    { verdict: 'keep', reason: 'gone', evidence: ['gone before deletion'] },
    'none',
  );
  if (!run.writes) return;
  // Its claim stays until it expires: an answer that lags says gone of what is there, and the claim may be all that keeps it.
  await run.ledger.unmark(scope.id, item.key);
}

async function readAll(run: Run, type: ResourceType, items: readonly ResourceId[]): Promise<Map<string, ReadResult>> {
  try {
    return await type.get(items, run.signal);
  } catch (cause) {
    const error = asCloudError(cause, `get ${type.name}`);
    return new Map(items.map(({ key }) => [key, { status: 'failed', error }]));
  }
}

function unread(run: Run, scope: CloudScope, type: ResourceType, item: ResourceId, cause: Error): Later[] {
  const error = asCloudError(cause, `get ${type.name}`);
  run.report.error(error);
  const evidence = [`${error.code}: ${messageOf(error)}`];
  const retry = isRetryable(error.code);
  run.report.item(
    placeholder(scope, item),
    { verdict: 'keep', reason: 'unread', evidence },
    retry ? 'deferred' : 'failed',
  );
  return retry ? [{ item, afterMs: error.retryAfterMs ?? 60_000, patient: false, reason: error.code }] : [];
}

/** Stands in the report for a resource of which nothing but its id is known. */
function placeholder(scope: CloudScope, item: ResourceId): Resource {
  const kind = scope.types.find((type) => type.name === item.type)?.kind ?? 'disk';
  return {
    ...item,
    cloud: scope.cloud,
    kind,
    name: item.id,
    place: '',
    tags: {},
    state: 'attached',
    nativeState: 'unread',
    attachedTo: [],
    holds: [],
  };
}
