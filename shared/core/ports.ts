/**
 * The seams. A cloud is added by implementing these in `shared/<cloud>`; core has no other way out.
 */
import type { Attachment, Attribution, Kind, OwnerAnswer, OwnerRef, Resource, Vm, VmEvent } from './model.ts';

/** What a caller asked for. At least one of the fields narrows it; adapters refuse what they do not know with InputError. */
export interface ScopeRequest {
  /** Exactly these {@link CloudScope.id}s: what an event or a batch of work belongs to. */
  readonly scopeIds?: readonly string[];
  /** AWS: region names, or `['all']`. */
  readonly regions?: readonly string[];
  /** Azure: subscription ids. */
  readonly subscriptions?: readonly string[];
  readonly cluster?: string;
  readonly resourceGroup?: string;
  /** Native VM id, or its name. */
  readonly vm?: string;
}

/** Narrows a listing inside one scope. */
export interface ListFilter {
  readonly cluster?: string;
  readonly resourceGroup?: string;
  readonly kinds?: readonly Kind[];
  /** Tag keys beside the conventions' own that make a resource a candidate: the policy's owner tags. */
  readonly ownerTags: readonly string[];
}

/** Who a VM was, for finding what it left: facts from the event, the ledger and a last read. */
export interface VmIdentity {
  readonly id: string;
  readonly place: string;
  readonly name?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** From the ledger: what hung on it while it was alive. */
  readonly claimed: readonly Attachment[];
}

/** Enough to read a resource again. */
export interface ResourceId {
  readonly key: string;
  readonly id: string;
  /** Name of its {@link ResourceType}. */
  readonly type: string;
}

/** `gone`: an exact read says it does not exist. `failed`: nothing is known, so nothing is done. */
export type ReadResult =
  | { readonly status: 'found'; readonly resource: Resource }
  | { readonly status: 'gone' }
  | { readonly status: 'failed'; readonly error: Error };

export interface SnapshotState {
  readonly id: string;
  readonly state: 'pending' | 'completed' | 'failed';
}

/** One resource type = one file = one of these. */
export interface ResourceType {
  readonly name: string;
  readonly kind: Kind;
  /**
   * Streams free and tagged resources, filtered by the cloud itself, a page at a time, so that the cost grows with the
   * leftovers and not with the estate. Ends normally only when the answer was complete; throws CloudError otherwise
   * (a failed page, a truncated or partial answer), after which the listing counts as incomplete.
   */
  list(filter: ListFilter, signal: AbortSignal): AsyncIterable<readonly Resource[]>;
  /** What the VM left by claims and naming conventions, by few exact reads. May include what is not free. Throws CloudError. */
  find(vm: VmIdentity, signal: AbortSignal): Promise<readonly Resource[]>;
  /** Fresh, strongly consistent reads. The map has exactly the keys of `resources`. Never throws for one of them. */
  get(resources: readonly Pick<Resource, 'key' | 'id'>[], signal: AbortSignal): Promise<Map<string, ReadResult>>;
  /**
   * Deletes, and returns once the cloud says that it is done. Already gone = returns normally. Never detaches, never forces.
   * Throws CloudError.
   */
  delete(resource: Resource, signal: AbortSignal): Promise<void>;
  /** Disks only. Starts a snapshot, or finds the one made under the same `token`, and reports its state. Throws CloudError. */
  snapshot?(resource: Resource, token: string, signal: AbortSignal): Promise<SnapshotState>;
  /** Makes a disk again, with its tags; returns the new native id. Throws CloudError. */
  restore?(source: RestoreSource, signal: AbortSignal): Promise<RestoreResult>;
}

/** What a tombstone knows of a deleted disk. */
export interface RestoreSource {
  readonly id: string;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly snapshotId?: string;
  readonly restore?: Readonly<Record<string, string | number | boolean>>;
}

export interface RestoreResult {
  readonly id: string;
  readonly from: 'snapshot' | 'recycle-bin';
}

export interface OwnerDirectory {
  /**
   * Exact, batched lookups. The map has an entry for every ref under {@link ownerKey}; what could not be proven is
   * `unknown`. Never throws for the cloud's errors. An alive answer carries `vm` where the read showed its attachments.
   */
  lookup(refs: readonly OwnerRef[], signal: AbortSignal): Promise<Map<string, OwnerAnswer>>;
  /** One exact read of one VM; undefined = proven gone and nothing of it is left to read. Throws CloudError. */
  read(vm: { readonly id: string; readonly place: string }, signal: AbortSignal): Promise<Vm | undefined>;
}

/** The map key of an owner ref. */
export function ownerKey(ref: OwnerRef): string {
  return JSON.stringify([ref.by, ref.place, ref.value, ref.clusterTag]);
}

/** Names owners from what a resource shows. One file per convention; it never guesses: no evidence = empty list. */
export interface Convention {
  readonly name: string;
  attribute(resource: Resource): readonly Attribution[];
}

/** One place that is swept as a whole, with its own clients and limits: an AWS region, an Azure subscription. */
export interface CloudScope {
  readonly cloud: string;
  /** Stable over runs; partitions the ledger: `aws:us-east-1`, `azure:<subscription>`. */
  readonly id: string;
  /** In the order of deletion, which the registry explains (NICs before disks where one blocks the other). */
  readonly types: readonly ResourceType[];
  readonly owners: OwnerDirectory;
  readonly conventions: readonly Convention[];
  /**
   * Reads an explicit owner tag's value. AWS: `i-…` = id, otherwise a Name. undefined = cannot be parsed, which keeps.
   */
  parseOwnerTag(value: string, resource: Resource): OwnerRef | undefined;
  /**
   * Whether it carries a tag of a known controller or one of `ownerTags`. A claim alone never makes a candidate: people
   * keep disks of VMs on purpose.
   */
  isCandidate(resource: Resource, ownerTags: readonly string[]): boolean;
  /** Which resource a native id or name names, without a call; undefined = none of this cloud's ids. */
  identify(id: string): ResourceId | undefined;
  /** Requests sent so far, by operation name; every HTTP request counts, retries too. */
  readonly calls: CallCounter;
  /** How many deletes may run at the same time; pacing and retries of one call are the adapter's. */
  readonly deleteConcurrency: number;
  /**
   * How many are read again together right before they are deleted. As many as one call reads, or few where each is a
   * call of its own: a deletion must not wait for the reads of many others while what was read of it ages.
   */
  readonly recheckBatch: number;
}

export interface CallCounter {
  counts(): Readonly<Record<string, number>>;
}

/** A cloud, opened for one request. */
export interface Cloud {
  readonly name: string;
  /** Scopes that fit; regions that are disabled or not opted in are skipped and named. Throws InputError, CloudError. */
  open(request: ScopeRequest, signal: AbortSignal): Promise<OpenedScopes>;
  /** Parses one native event; undefined = well-formed, but none of ours (another state, another type). Throws InputError naming the field. */
  parseEvent(raw: unknown): readonly VmEvent[];
}

export interface OpenedScopes {
  readonly scopes: readonly CloudScope[];
  readonly skipped: readonly { readonly scope: string; readonly reason: string }[];
}

// ---- Ledger -------------------------------------------------------------------------------------------------------

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export interface LedgerKey {
  /** At most 200 characters of printable ASCII or any Unicode: stores encode what they cannot hold. */
  readonly partition: string;
  /** Sorted by UTF-16 code unit inside its partition. */
  readonly sort: string;
}

export interface LedgerEntry extends LedgerKey {
  readonly value: { readonly [key: string]: Json };
  /** Opaque; changes at every write. */
  readonly version: string;
  readonly expiresAt: Date;
}

/** `any`: whatever is there. `absent`: only where nothing (or only an expired entry) is. `version`: only where unchanged. */
export type WriteCondition = 'any' | 'absent' | { readonly version: string };

/**
 * A small key–value store with conditional writes and prefix queries. Every entry expires. Expired entries are never
 * returned, whether or not the store has removed them yet. Values up to 30 KB of JSON.
 */
export interface LedgerStore {
  get(key: LedgerKey): Promise<LedgerEntry | undefined>;
  /** Missing keys are left out. Any number of keys; stores batch. */
  getMany(keys: readonly LedgerKey[]): Promise<LedgerEntry[]>;
  /** Returns the new version. Throws {@link LedgerConflict} when the condition does not hold; then nothing was written. */
  put(key: LedgerKey, value: LedgerEntry['value'], expiresAt: Date, condition: WriteCondition): Promise<string>;
  /** Missing = fine, except under a version. Throws {@link LedgerConflict}. */
  delete(key: LedgerKey, condition?: { readonly version: string }): Promise<void>;
  /** Streams entries whose sort key starts with `prefix`, in order (or reversed), reading pages as they are consumed. */
  query(partition: string, options?: LedgerQuery): AsyncIterable<LedgerEntry>;
  close(): Promise<void>;
}

export interface LedgerQuery {
  readonly prefix?: string;
  readonly reverse?: boolean;
  readonly limit?: number;
}

export class LedgerConflict extends Error {
  override readonly name = 'LedgerConflict';
}

// ---- Everything else ----------------------------------------------------------------------------------------------

export interface Clock {
  now(): Date;
  /** Rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Structured; fields are redacted by the implementation, messages carry no data. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Hands work to the function that deletes. */
export interface WorkQueue {
  /** `delayMs` may exceed what the queue can delay at once: the receiver then puts it back for the rest. */
  send(work: Work, delayMs: number): Promise<void>;
  /** After the last try: into the dead-letter queue, where an alarm watches. */
  giveUp(work: Work, reason: string): Promise<void>;
}

/** A batch of resources to recheck and delete. Bounded to {@link REAP_BATCH}; fits 256 KB (SQS) and, in smaller ones, 48 KB (Azure). */
export interface ReapWork {
  readonly kind: 'reap';
  readonly runId: string;
  readonly scopeId: string;
  /** Not before this instant (ISO 8601). */
  readonly notBefore: string;
  /** How often this work was put back because the queue could not delay it long enough, or the cloud said later. */
  readonly attempt: number;
  readonly items: readonly ResourceId[];
  /** The event that led here, for 'created after the event'. */
  readonly eventTime?: string;
}

/** Goes on with a sweep in another scope, or with what a run had no time for. */
export interface SweepWork {
  readonly kind: 'sweep';
  readonly runId: string;
  readonly request: ScopeRequest;
  /** How often it was continued. */
  readonly attempt: number;
}

/** An event that is looked at again later. */
export interface EventWork {
  readonly kind: 'event';
  readonly event: Omit<VmEvent, 'time'> & { readonly time: string };
}

export type Work = ReapWork | SweepWork | EventWork;

export const REAP_BATCH = 200;

/** Tells the outside: EventBridge, Event Grid, the log. A failure to tell never stops a deletion and is logged. */
export interface Notifier {
  notify(event: Notice): Promise<void>;
}

export interface Notice {
  readonly type: 'resource-deleted' | 'sweep-finished' | 'breaker-tripped' | 'item-given-up';
  /** Plain JSON; docs/events.md has the fields of each type. */
  readonly detail: object;
}
