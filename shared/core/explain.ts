import { type Call, type Engine, openScopes, startRun } from './engine.ts';
import { asCloudError, InputError } from './errors.ts';
import type { Ledger } from './ledger.ts';
import { askOwners, judgeSighting, sight } from './look.ts';
import { OwnerBook } from './owner-book.ts';
import type { CloudScope, RestoreResult, ScopeRequest } from './ports.ts';
import { OWN_OPT_OUT } from './protections.ts';
import type { Tombstone } from './records.ts';
import { type ReportItem, toReportItem } from './report.ts';

/**
 * One resource as a sweep would see it now, with when it would go. Reads only.
 * @throws InputError when the id is none of this cloud's, or nothing has it
 * @throws CloudError when it could not be read
 */
export async function explain(engine: Engine, id: string, request: ScopeRequest, call: Call): Promise<ReportItem> {
  const run = startRun(engine, 'explain', request, call);
  const { scopes } = await openScopes(engine, request, call.signal);
  let named = false;
  for (const scope of scopes) {
    const resourceId = scope.identify(id);
    const type = scope.types.find(({ name }) => name === resourceId?.type);
    if (!resourceId || !type) continue;
    named = true;
    const read = (await type.get([resourceId], call.signal)).get(resourceId.key);
    if (read?.status === 'gone') continue;
    if (read?.status !== 'found') throw asCloudError(read?.error ?? new Error('no answer'), `get ${type.name}`);
    const [sighting] = await sight(run, scope, [read.resource]);
    if (!sighting) continue;
    const book = new OwnerBook(scope.owners, run.clock);
    await askOwners(run, scope, sighting.refs, book);
    const verdict = judgeSighting(run, scope, sighting, book);
    return toReportItem(read.resource, verdict, verdict.verdict === 'reap' ? 'would-delete' : 'none');
  }
  throw new InputError(
    'id',
    named ? `no NIC or disk has the id ${id} (any more)` : `${id} is no id of a NIC or disk of this cloud`,
  );
}

/** Deletions, newest first. */
export async function history(ledger: Ledger, limit: number): Promise<Tombstone[]> {
  return Array.fromAsync(ledger.tombstones(limit));
}

/**
 * Makes a deleted disk again, from the snapshot that was taken before, or from the cloud's recycle bin. It comes back with
 * its tags, and with the opt-out tag: with its old ones alone the next sweep would delete it again.
 * @throws InputError when no record of a deletion has this id, or it was no disk
 */
export async function restore(
  ledger: Ledger,
  scopes: readonly CloudScope[],
  id: string,
  signal: AbortSignal,
): Promise<RestoreResult> {
  for await (const tombstone of ledger.tombstones()) {
    if (tombstone.id.toLowerCase() !== id.toLowerCase()) continue;
    if (tombstone.kind !== 'disk')
      throw new InputError('id', `${id} was a ${tombstone.kind}: only disks can be restored`);
    const scope = scopes.find((one) => one.id === tombstone.scopeId);
    const type = scope?.types.find(({ name }) => name === tombstone.type);
    if (!type) throw new InputError('id', `${id} was deleted in ${tombstone.scopeId}: name that scope`);
    if (!type.restore) throw new InputError('id', `${type.name} cannot be restored`);
    return type.restore(
      {
        id,
        name: tombstone.name,
        tags: { ...tombstone.tags, [OWN_OPT_OUT]: 'restored' },
        ...(tombstone.snapshotId !== null && { snapshotId: tombstone.snapshotId }),
        ...(tombstone.restore !== null && { restore: tombstone.restore }),
      },
      signal,
    );
  }
  throw new InputError('id', `no record of a deletion of ${id}`);
}
