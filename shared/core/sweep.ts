import { breakerHolds, bury, KnownOwners } from './breaker.ts';
import { chunks } from './chunks.ts';
import { Collector } from './collect.ts';
import { asCloudError } from './errors.ts';
import { finishIntents } from './intents.ts';
import type { Judged, Later } from './look.ts';
import { OwnerBook } from './owner-book.ts';
import { type CloudScope, type ListFilter, REAP_BATCH, type ResourceId, type ScopeRequest } from './ports.ts';
import { reapItems } from './reap.ts';
import { messageOf, type Run } from './run.ts';
import { identityOf } from './vm-event.ts';

/**
 * One sweep of one scope: find, judge, and (in enforce) delete or hand over. Two passes: nothing is deleted before all is
 * judged, since the breaker and the completeness of a listing speak about all of it.
 * @returns what may be tried again later
 */
export async function sweepScope(run: Run, scope: CloudScope, request: ScopeRequest): Promise<Later[]> {
  await finishIntents(run, scope);
  const book = new OwnerBook(scope.owners, run.clock);
  const owners = await KnownOwners.load(run, scope);
  const collector = new Collector(run, scope, book, owners, await room(run));
  if (request.vm === undefined) await collectAll(run, scope, request, collector);
  else await collectVm(run, scope, request.vm, collector);
  const { orphans, incomplete, marked } = await collector.end();
  const whole = isWhole(request) && run.clusters.length === 0;
  if (run.writes && isWhole(request)) await clearMarks(run, scope, marked, incomplete);
  if (await breakerHolds(run, scope, owners, whole)) {
    for (const orphan of orphans) put(run, orphan, 'deferred', 'breaker');
    return [];
  }
  await bury(run, scope, owners);
  const complete = orphans.filter(({ resource }) => !incomplete.has(resource.type));
  for (const orphan of orphans)
    if (incomplete.has(orphan.resource.type)) put(run, orphan, 'deferred', 'listing incomplete');
  return reapOrphans(run, scope, complete, book);
}

async function collectAll(run: Run, scope: CloudScope, request: ScopeRequest, collector: Collector): Promise<void> {
  const { cluster, resourceGroup } = request;
  const only = run.clusters.length === 1 ? run.clusters[0] : cluster;
  const filter: ListFilter = { cluster: only, resourceGroup, kinds: run.policy.kinds, ownerTags: run.policy.ownerTags };
  for (const type of scope.types) if (run.policy.kinds.includes(type.kind)) await collector.list(type, filter);
}

/** One VM's leftovers: what a VM-deleted event would find, at the hand of a person. */
async function collectVm(run: Run, scope: CloudScope, vm: string, collector: Collector): Promise<void> {
  const identity = await identityOf(run, scope, vm);
  for (const type of scope.types) {
    if (!run.policy.kinds.includes(type.kind)) continue;
    try {
      await collector.add(await type.find(identity, run.signal));
    } catch (cause) {
      const error = asCloudError(cause, `find ${type.name}`);
      collector.result.incomplete.add(type.name);
      run.report.incomplete(error);
      run.log.error({ type: type.name, error: messageOf(error) }, 'look-up incomplete: nothing of it is deleted');
    }
  }
}

async function reapOrphans(run: Run, scope: CloudScope, orphans: readonly Judged[], book: OwnerBook): Promise<Later[]> {
  const here = run.mode === 'enforce' && !run.queue;
  if (!here) run.budget.left -= orphans.length;
  if (run.mode !== 'enforce') {
    for (const orphan of orphans) put(run, orphan, 'would-delete');
    return [];
  }
  const ids: ResourceId[] = orphans.map(({ resource: { key, id, type } }) => ({ key, id, type }));
  if (!run.queue) {
    const judged = new Map(orphans.map((orphan) => [orphan.resource.key, orphan]));
    return reapItems(run, scope, ids, { book, judged });
  }
  const notBefore = run.clock.now().toISOString();
  for (const items of chunks(ids, REAP_BATCH)) {
    await run.queue.send({ kind: 'reap', runId: run.runId, scopeId: scope.id, notBefore, attempt: 0, items }, 0);
  }
  for (const orphan of orphans) put(run, orphan, 'deferred', 'handed to the function that deletes');
  return [];
}

/**
 * Marks of what is no longer listed as free: in use again, or gone. The next time they are orphans, their grace starts anew.
 * Also where the policy has clusters: a mark that is not of one of them only starts anew, a mark that is kept too long
 * would let a resource go the moment that it is free again.
 */
async function clearMarks(
  run: Run,
  scope: CloudScope,
  listed: ReadonlySet<string>,
  incomplete: ReadonlySet<string>,
): Promise<void> {
  for await (const mark of run.ledger.allMarks(scope.id)) {
    if (!listed.has(mark.resourceKey) && !incomplete.has(mark.type))
      await run.ledger.unmark(scope.id, mark.resourceKey);
  }
}

async function room(run: Run): Promise<number> {
  const spent = await run.ledger.spentThisHour(run.clock.now());
  return Math.max(0, Math.min(run.budget.left, run.policy.budget.perHour - spent));
}

/** A sweep of everything in the scope, and not of a part of it. */
function isWhole({ cluster, resourceGroup, vm }: ScopeRequest): boolean {
  return cluster === undefined && resourceGroup === undefined && vm === undefined;
}

function put(run: Run, { resource, verdict }: Judged, outcome: 'would-delete' | 'deferred', why?: string): void {
  run.report.item(resource, verdict, outcome, why === undefined ? [] : [why]);
}
