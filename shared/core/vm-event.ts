import { chunks } from './chunks.ts';
import { asCloudError } from './errors.ts';
import { finishIntents } from './intents.ts';
import { askOwners, type Judged, judgeSighting, keepMark, type Sighting, sight } from './look.ts';
import type { Resource, Vm, VmEvent } from './model.ts';
import { OwnerBook } from './owner-book.ts';
import { type CloudScope, REAP_BATCH, type ResourceId, type VmIdentity } from './ports.ts';
import { belongsToCluster } from './protections.ts';
import type { OwnerRecord } from './records.ts';
import { messageOf, type Run } from './run.ts';

/** When an event is looked at again of which one look failed. */
const RETRY_MS = 60_000;
/** How long after its event a VM may still be shown; what is missed then is the next sweep's. */
const STALE_MS = 15 * 60_000;

/** What becomes of an event: handled, or to be looked at again after so many milliseconds. */
export interface EventResult {
  readonly laterMs?: number;
  /** Where there is no queue: what would have been handed over, and when. */
  readonly due: readonly { readonly item: ResourceId; readonly afterMs: number }[];
}

/**
 * One VM event. A VM that starts, or is about to go, has its attachments claimed. One that is gone has its leftovers
 * found, judged, marked and handed to the function that deletes, which looks again: this one deletes nothing.
 * @throws CloudError when a read failed; the event is then looked at again
 */
export async function handleVmEvent(run: Run, scope: CloudScope, event: VmEvent): Promise<EventResult> {
  if (event.change !== 'deleted') {
    await claim(run, scope, event);
    return { due: [] };
  }
  const settledMs = event.time.getTime() + run.policy.settle - run.clock.now().getTime();
  if (settledMs > 0) return { laterMs: settledMs, due: [] };
  await finishIntents(run, scope);
  const vm = await scope.owners.read({ id: event.vmId, place: event.place }, run.signal);
  if (vm && vm.state !== 'gone') return notGone(run, scope, event, vm);
  const identity = await identify(run, scope, event.vmId, event.place, vm);
  const judged = await findLeftovers(run, scope, identity, event);
  if (identity.record) await run.ledger.buried(scope.id, identity.record, run.clock.now());
  const due = await handOver(run, scope, judged, event);
  return run.report.complete ? { due } : { due, laterMs: RETRY_MS };
}

/**
 * Deleted says the event, there says the cloud. A VM that is older than the event is read from a replica that lags, and is
 * looked at again for a while; one that is younger was made again under its name, and its things are claimed.
 */
async function notGone(run: Run, scope: CloudScope, event: VmEvent, vm: Vm): Promise<EventResult> {
  const ageMs = run.clock.now().getTime() - event.time.getTime();
  const stale = vm.state === 'unknown' || (vm.createdAt !== undefined && vm.createdAt < event.time);
  if (stale && ageMs < STALE_MS) return { laterMs: RETRY_MS, due: [] };
  if (vm.state === 'alive') await sighted(run, scope, vm);
  run.log.info({ vm: event.vmId, state: vm.state }, 'event of a VM that is there: nothing to do');
  return { due: [] };
}

/** What the ledger and one read know of the VM that a person named by id or name. */
export async function identityOf(run: Run, scope: CloudScope, vmName: string): Promise<VmIdentity> {
  const record = (await run.ledger.ownerById(scope.id, vmName)) ?? (await recordOfName(run, scope, vmName));
  const id = record?.id ?? vmName;
  const vm = await scope.owners.read({ id, place: record?.place ?? '' }, run.signal);
  const identity = await identify(run, scope, id, '', vm, record);
  return { ...identity, name: identity.name ?? vmName };
}

interface KnownIdentity extends VmIdentity {
  readonly record?: OwnerRecord;
}

async function identify(
  run: Run,
  scope: CloudScope,
  id: string,
  place: string,
  vm: Vm | undefined,
  known?: OwnerRecord,
): Promise<KnownIdentity> {
  const record = known ?? (await run.ledger.ownerById(scope.id, id));
  return {
    id: vm?.id ?? id,
    place: vm?.place ?? record?.place ?? place,
    name: vm?.name ?? record?.name,
    tags: vm?.tags ?? record?.tags,
    claimed: record?.attachments ?? [],
    record,
  };
}

/** A name is a person's: the ledger is searched for it. */
async function recordOfName(run: Run, scope: CloudScope, name: string): Promise<OwnerRecord | undefined> {
  for await (const record of run.ledger.owners(scope.id)) {
    if (record.name.toLowerCase() === name.toLowerCase()) return record;
  }
  return undefined;
}

async function claim(run: Run, scope: CloudScope, event: VmEvent): Promise<void> {
  const vm = await scope.owners.read({ id: event.vmId, place: event.place }, run.signal);
  if (vm && vm.state === 'alive') await sighted(run, scope, vm);
}

async function sighted(run: Run, scope: CloudScope, vm: Vm): Promise<void> {
  if (!run.writes || (run.clusters.length > 0 && !belongsToCluster(vm, run.clusters))) return;
  await run.ledger.sighted(scope.id, vm, run.clock.now());
}

async function findLeftovers(run: Run, scope: CloudScope, identity: VmIdentity, event: VmEvent): Promise<Judged[]> {
  const found: Resource[] = [];
  for (const type of scope.types) {
    if (!run.policy.kinds.includes(type.kind)) continue;
    try {
      found.push(...(await type.find(identity, run.signal)));
    } catch (cause) {
      // The other types go on; the event comes back for this one, and what is done twice does no harm.
      run.report.incomplete(asCloudError(cause, `find ${type.name}`));
      run.log.warn({ type: type.name, error: messageOf(cause) }, 'leftovers not found: the event is looked at again');
    }
  }
  const book = new OwnerBook(scope.owners, run.clock);
  const sightings = await sight(run, scope, found);
  await askOwners(
    run,
    scope,
    sightings.flatMap(({ refs }) => refs),
    book,
  );
  const judged: Judged[] = [];
  for (const sighting of sightings) {
    const { resource } = sighting;
    const mark = sighting.mark ?? {
      resourceKey: resource.key,
      firstSeen: firstSight(run, sighting, event),
      detachedAt: resource.detachedAt,
    };
    const verdict = judgeSighting(run, scope, { ...sighting, mark }, book, event.time);
    if (verdict.verdict === 'keep') await keepMark(run, scope, sighting, verdict);
    else if (run.writes) await run.ledger.mark(scope.id, resource, mark.firstSeen, run.clock.now());
    judged.push({ ...sighting, mark, verdict });
  }
  return judged;
}

/**
 * An event that came in time is the first sighting of what surely existed before it. A late one says nothing of what
 * happened since, so no more than the settle time is credited; nor where one look is no proof.
 */
function firstSight(run: Run, { resource, claim: claimed }: Sighting, event: VmEvent): Date {
  const now = run.clock.now();
  const existed = (resource.createdAt ?? claimed?.since ?? now) < event.time;
  if (!existed || resource.needsSecondLook) return now;
  return new Date(Math.max(event.time.getTime(), now.getTime() - run.policy.settle));
}

/** Groups by when they are due, so that one message deletes what goes together. */
async function handOver(
  run: Run,
  scope: CloudScope,
  judged: readonly Judged[],
  event: VmEvent,
): Promise<EventResult['due']> {
  const now = run.clock.now().getTime();
  const due = judged.flatMap(({ resource: { key, id, type }, verdict }) =>
    verdict.verdict === 'keep'
      ? []
      : [{ item: { key, id, type }, afterMs: Math.max(0, (verdict.dueAt?.getTime() ?? now + 60_000) - now) }],
  );
  for (const { resource, verdict } of judged) {
    const would = run.mode === 'enforce' ? 'deferred' : 'would-delete';
    run.report.item(resource, verdict, verdict.verdict === 'reap' ? would : 'none');
  }
  if (run.mode !== 'enforce' || !run.queue) return due;
  const latest = Math.max(0, ...due.map(({ afterMs }) => afterMs));
  const notBefore = new Date(now + latest).toISOString();
  for (const batch of chunks(due, REAP_BATCH)) {
    const items = batch.map(({ item }) => item);
    const eventTime = event.time.toISOString();
    await run.queue.send(
      { kind: 'reap', runId: run.runId, scopeId: scope.id, notBefore, attempt: 0, items, eventTime },
      latest,
    );
  }
  return due;
}
