import type { Claim, Mark, Resource, Vm } from './model.ts';
import { LedgerConflict, type LedgerEntry, type LedgerKey, type LedgerStore } from './ports.ts';
import {
  type BreakerState,
  type Fields,
  type Intent,
  type OwnerRecord,
  ownerValue,
  type Tombstone,
  text,
  time,
  toClaim,
  toIntent,
  toJson,
  toMark,
  toOwner,
} from './records.ts';

const DAY_MS = 86_400_000;
/** Claims and sightings are renewed while their VM is seen; a cluster may be off for weeks before anybody cleans up. */
const CLAIM_TTL_MS = 90 * DAY_MS;
const MARK_TTL_MS = 30 * DAY_MS;
/** An intent outlives every retry of the run that wrote it; it is removed by whoever finishes it. */
const INTENT_TTL_MS = 365 * DAY_MS;
/** Longer than any run holds what it has read. */
const DONE_TTL_MS = 2 * 60 * 60_000;
/** An intent older than this is not of the same attempt any more: the new one gets a time of its own. */
const INTENT_ADOPTED_MS = 60 * 60_000;
const RUN_TTL_MS = 90 * DAY_MS;

/**
 * The ledger in the words of the house, over any key–value store. Everything that `plan` may call is a read; a run that
 * must not write gets {@link readOnly} around its store, so that a mistake here fails loudly instead of writing.
 */
export class Ledger {
  readonly store: LedgerStore;
  constructor(store: LedgerStore) {
    this.store = store;
  }

  async claims(scopeId: string, resourceKeys: readonly string[]): Promise<Map<string, Claim>> {
    const entries = await this.store.getMany(resourceKeys.map((sort) => ({ partition: `claim|${scopeId}`, sort })));
    return new Map(entries.map((entry) => [entry.sort, toClaim(entry)]));
  }

  async marks(scopeId: string, resourceKeys: readonly string[]): Promise<Map<string, Mark>> {
    const entries = await this.store.getMany(resourceKeys.map((sort) => ({ partition: `mark|${scopeId}`, sort })));
    return new Map(entries.map((entry) => [entry.sort, toMark(entry)]));
  }

  async *allMarks(scopeId: string): AsyncIterable<Mark & { readonly type: string }> {
    for await (const entry of this.store.query(`mark|${scopeId}`)) {
      yield { ...toMark(entry), type: text(entry.value.type) };
    }
  }

  /** Keeps the earliest sighting: a mark that is there with the same detach time stays as it is. */
  async mark(scopeId: string, resource: Resource, firstSeen: Date, now: Date): Promise<void> {
    const value = {
      firstSeen: firstSeen.toISOString(),
      detachedAt: resource.detachedAt?.toISOString() ?? null,
      type: resource.type,
    };
    await this.store.put({ partition: `mark|${scopeId}`, sort: resource.key }, value, after(now, MARK_TTL_MS), 'any');
  }

  async unmark(scopeId: string, resourceKey: string): Promise<void> {
    await this.store.delete({ partition: `mark|${scopeId}`, sort: resourceKey });
  }

  async #owner(scopeId: string, vmKey: string): Promise<OwnerRecord | undefined> {
    const entry = await this.store.get({ partition: `owner|${scopeId}`, sort: vmKey });
    return entry && toOwner(entry);
  }

  /** By native id, without case: the VM last seen under it. */
  async ownerById(scopeId: string, id: string): Promise<OwnerRecord | undefined> {
    const entry = await this.store.get({ partition: `owner-id|${scopeId}`, sort: id.toLowerCase() });
    return entry && this.#owner(scopeId, text(entry.value.vmKey));
  }

  async *owners(scopeId: string): AsyncIterable<OwnerRecord> {
    for await (const entry of this.store.query(`owner|${scopeId}`)) yield toOwner(entry);
  }

  /**
   * Records that a living VM was seen, and claims what hangs on it. Writes only what differs from the last sighting, and
   * once a day to renew it.
   */
  async sighted(scopeId: string, vm: Vm, now: Date): Promise<void> {
    const key = { partition: `owner|${scopeId}`, sort: vm.key };
    const entry = await this.store.get(key);
    const before = entry && toOwner(entry);
    await this.#claimAll(scopeId, vm, now);
    // Attachments are merged, not replaced: what was detached a moment ago is still what this VM had.
    const attachments = [...vm.attachments];
    for (const old of before?.attachments ?? [])
      if (!attachments.some((one) => one.key === old.key)) attachments.push(old);
    const same =
      before?.state === 'alive' && before.name === vm.name && attachments.length === before.attachments.length;
    if (same && entry && isFresh(entry, now)) return;
    const byId = { partition: `owner-id|${scopeId}`, sort: vm.id.toLowerCase() };
    await this.store.put(byId, { vmKey: vm.key }, after(now, CLAIM_TTL_MS), 'any');
    await this.store.put(key, ownerValue(vm, 'alive', attachments.slice(0, 64)), after(now, CLAIM_TTL_MS), 'any');
  }

  /** Somebody looked, and the VM is gone: it no longer counts as known alive. */
  async buried(scopeId: string, record: OwnerRecord, now: Date): Promise<void> {
    const key = { partition: `owner|${scopeId}`, sort: record.vmKey };
    await this.store.put(
      key,
      ownerValue({ ...record, key: record.vmKey }, 'gone', record.attachments),
      after(now, CLAIM_TTL_MS),
      'any',
    );
  }

  /** The latest VM seen with a resource has the claim: what moved from one VM to another, and back, follows the living. */
  async #claimAll(scopeId: string, vm: Vm, now: Date): Promise<void> {
    const partition = `claim|${scopeId}`;
    const entries = await this.store.getMany(vm.attachments.map(({ key }) => ({ partition, sort: key })));
    const known = new Map(entries.map((entry) => [entry.sort, entry]));
    for (const { key } of vm.attachments) {
      const entry = known.get(key);
      const before = entry && toClaim(entry);
      const mine = before?.owner.value === vm.id;
      if (mine && isFresh(entry, now)) continue;
      const since = (mine ? before.since : now).toISOString();
      const value = { owner: vm.id, place: vm.place, name: vm.name, since };
      await this.store.put({ partition, sort: key }, value, after(now, CLAIM_TTL_MS), 'any');
    }
  }

  /**
   * Writes the intent to delete before the call, or adopts the one that an ended run left. It is a record, no lock: two
   * runs that delete the same orphan agree on its time, so that {@link completed} lets only one of them record it.
   */
  async intend(
    scopeId: string,
    resourceKey: string,
    item: Tombstone,
    runId: string,
    now: Date,
  ): Promise<{ readonly at: Date; readonly own: boolean }> {
    const key = { partition: `intent|${scopeId}`, sort: resourceKey };
    const value = { item: toJson(item), runId, at: now.toISOString() };
    const expiresAt = after(now, INTENT_TTL_MS);
    if (await this.#putIfUnchanged(key, value, expiresAt, undefined)) return { at: now, own: true };
    for (;;) {
      const entry = await this.store.get(key);
      const at = entry && time(entry.value.at);
      if (at && now.getTime() - at.getTime() < INTENT_ADOPTED_MS) return { at, own: false };
      if (await this.#putIfUnchanged(key, value, expiresAt, entry?.version)) return { at: now, own: true };
    }
  }

  async intent(scopeId: string, resourceKey: string): Promise<Intent | undefined> {
    const entry = await this.store.get({ partition: `intent|${scopeId}`, sort: resourceKey });
    return entry && toIntent(entry);
  }

  async *openIntents(scopeId: string): AsyncIterable<Intent> {
    for await (const entry of this.store.query(`intent|${scopeId}`)) yield toIntent(entry);
  }

  /**
   * Completes the record of a deletion: the tombstone first, then the intent goes, so that a crash between leaves both.
   * False = somebody else has already recorded this very deletion.
   */
  async completed(
    scopeId: string,
    resourceKey: string,
    tombstone: Tombstone,
    intendedAt: Date,
    retentionMs: number,
  ): Promise<boolean> {
    const sort = `${newestFirst(intendedAt)}|${resourceKey}`;
    const first = await this.#putIfUnchanged(
      { partition: 'tombstone', sort },
      toJson(tombstone),
      after(intendedAt, retentionMs),
      undefined,
    );
    // Before the intent goes: whoever intends after that finds this.
    const done = { at: tombstone.at ?? intendedAt.toISOString() };
    const expiresAt = after(new Date(done.at), DONE_TTL_MS);
    await this.store.put({ partition: `done|${scopeId}`, sort: resourceKey }, done, expiresAt, 'any');
    await this.store.delete({ partition: `intent|${scopeId}`, sort: resourceKey });
    return first;
  }

  /** When the last deletion under this key was recorded, if that is not long ago. */
  async doneAt(scopeId: string, resourceKey: string): Promise<Date | undefined> {
    const entry = await this.store.get({ partition: `done|${scopeId}`, sort: resourceKey });
    return entry && time(entry.value.at);
  }

  /** The delete did not happen: nothing to record. */
  async withdrawn(scopeId: string, resourceKey: string): Promise<void> {
    await this.store.delete({ partition: `intent|${scopeId}`, sort: resourceKey });
  }

  async unclaim(scopeId: string, resourceKey: string): Promise<void> {
    await this.store.delete({ partition: `claim|${scopeId}`, sort: resourceKey });
  }

  /** Newest first. */
  async *tombstones(limit?: number): AsyncIterable<Tombstone> {
    for await (const entry of this.store.query('tombstone', limit === undefined ? {} : { limit }))
      yield entry.value as unknown as Tombstone;
  }

  async finishedRun(runId: string, summary: Fields, at: Date): Promise<void> {
    await this.store.put(
      { partition: 'run', sort: `${newestFirst(at)}|${runId}` },
      summary,
      after(at, RUN_TTL_MS),
      'any',
    );
  }

  /** Newest first. */
  async *runs(limit: number): AsyncIterable<Fields> {
    for await (const entry of this.store.query('run', { limit })) yield entry.value;
  }

  async spentThisHour(now: Date): Promise<number> {
    const entry = await this.store.get({ partition: 'budget', sort: hourOf(now) });
    return entry ? Number(entry.value.count) : 0;
  }

  /** Takes up to `wanted` of the hour's budget; returns how many were granted. Exact under concurrent runs. */
  async spend(now: Date, wanted: number, perHour: number): Promise<number> {
    const key = { partition: 'budget', sort: hourOf(now) };
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const entry = await this.store.get(key);
      const spent = entry ? Number(entry.value.count) : 0;
      const granted = wanted < 0 ? wanted : Math.min(wanted, Math.max(0, perHour - spent));
      if (granted === 0) return 0;
      const count = Math.max(0, spent + granted);
      if (await this.#putIfUnchanged(key, { count }, after(now, 2 * DAY_MS), entry?.version)) return granted;
    }
    return 0; // Too busy to be sure: nothing is granted.
  }

  async breaker(scopeId: string): Promise<BreakerState | undefined> {
    const entry = await this.store.get({ partition: 'breaker', sort: scopeId });
    if (!entry) return undefined;
    return { trippedAt: time(entry.value.trippedAt), gone: Number(entry.value.gone), known: Number(entry.value.known) };
  }

  async tripBreaker(scopeId: string, state: BreakerState, holdMs: number): Promise<void> {
    const value = { trippedAt: state.trippedAt.toISOString(), gone: state.gone, known: state.known };
    await this.store.put(
      { partition: 'breaker', sort: scopeId },
      value,
      after(state.trippedAt, Math.max(holdMs, 1) + 7 * DAY_MS),
      'any',
    );
  }

  async releaseBreaker(scopeId: string): Promise<void> {
    await this.store.delete({ partition: 'breaker', sort: scopeId });
  }

  async #putIfUnchanged(key: LedgerKey, value: Fields, expiresAt: Date, version: string | undefined): Promise<boolean> {
    try {
      await this.store.put(key, value, expiresAt, version === undefined ? 'absent' : { version });
      return true;
    } catch (error) {
      if (error instanceof LedgerConflict) return false;
      throw error;
    }
  }
}

/** A store that reads and refuses to write: what `plan` and `explain` run on. */
export function readOnly(store: LedgerStore): LedgerStore {
  const refuse = () => Promise.reject(new Error('this run must not write to the ledger'));
  return {
    get: (key) => store.get(key),
    getMany: (keys) => store.getMany(keys),
    query: (partition, options) => store.query(partition, options),
    close: () => store.close(),
    put: refuse,
    delete: refuse,
  };
}

/** Written within the last day. */
function isFresh(entry: LedgerEntry | undefined, now: Date): boolean {
  return entry !== undefined && entry.expiresAt.getTime() - now.getTime() > CLAIM_TTL_MS - DAY_MS;
}

const after = (at: Date, ms: number) => new Date(at.getTime() + ms);
const hourOf = (at: Date) => at.toISOString().slice(0, 13);
/** Sorts newest first on stores that can only sort upwards. */
const newestFirst = (at: Date) => String(9_999_999_999_999 - at.getTime()).padStart(13, '0');
