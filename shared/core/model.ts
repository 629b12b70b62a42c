/**
 * The words of the house as types. Everything here is plain data, free of any SDK:
 * adapters translate a cloud's answer into it, core decides on it.
 */

/** What Gleaner deletes. A cloud's own name for it is the resource type's `name`. */
export type Kind = 'disk' | 'nic';

/**
 * - `free`      nothing uses it, and the cloud says so
 * - `attached`  something uses it, or may (an unknown native state is `attached`)
 * - `changing`  between the two (`attaching`, `detaching`, `creating`): look again later
 * - `deleting`  the cloud is already deleting it
 */
export type UseState = 'free' | 'attached' | 'changing' | 'deleting';

/** A built-in fact that forbids deletion, reported by the adapter: the judge keeps whatever has one. */
export interface Hold {
  /** kebab-case, stable, documented in docs/reasons.md; e.g. `requester-managed`, `private-endpoint`, `locked` */
  readonly code: string;
  /** The native field and value that say so, e.g. `InterfaceType=nat_gateway`. */
  readonly detail: string;
}

/** A NIC or disk, normalised. Adapters report facts only; nothing here is a decision. */
export interface Resource {
  /** Unique over every cloud and compared exactly: `aws:us-east-1:vol-…`; Azure: `azure:` + the lower-cased ARM id. */
  readonly key: string;
  /** The cloud's own id in its original casing, for output and for calls. */
  readonly id: string;
  readonly cloud: string;
  /** Name of the {@link ResourceType} that listed it, e.g. `ebs-volume`. */
  readonly type: string;
  readonly kind: Kind;
  /** The cloud's name, or the Name tag, or the id. */
  readonly name: string;
  /** Where owner names are looked up: AWS the region, Azure `<subscription>/<resource group>` in lower case, Google Cloud the zone. */
  readonly place: string;
  /** Tags in the cloud's own spelling. Read them through core/tags.ts, which knows whether keys have a case. */
  readonly tags: Readonly<Record<string, string>>;
  /** True where the cloud compares tag keys without case (Azure). */
  readonly tagsIgnoreCase?: boolean;
  readonly state: UseState;
  /** The native state, for evidence: `available`, `Unattached`. */
  readonly nativeState: string;
  /** Native ids of what it is attached to, if the cloud says. */
  readonly attachedTo: readonly string[];
  readonly createdAt?: Date;
  /** Native time of the last attach or detach, where the cloud has one (Azure, Google Cloud). */
  readonly detachedAt?: Date;
  /**
   * True where the cloud can call a resource free while an attach is already on its way (Azure disks): then one look is
   * no proof, and a second one at least the settle time later must agree.
   */
  readonly needsSecondLook?: boolean;
  readonly holds: readonly Hold[];
  /** Free text that conventions may read (ENI description, Google Cloud disk description). */
  readonly description?: string;
  /** GiB; disks only. */
  readonly sizeGiB?: number;
  /** Estimate at public list prices, US dollars a month of 730 h; absent = unknown. */
  readonly monthlyCostUsd?: number;
  /** What is needed to make a disk again from its snapshot (zone, type, size, iops, encryption key). Plain JSON, no secrets. */
  readonly restore?: Readonly<Record<string, string | number | boolean>>;
}

/** Names one owner. `id` refs are exact and never reused; `name` refs are looked up in `place`. */
export interface OwnerRef {
  readonly by: 'id' | 'name';
  /** AWS: `i-…` or the Name tag; Azure: lower-cased ARM id, or VM name. */
  readonly value: string;
  readonly place: string;
  /** For a `name` ref: the cluster tag key that the VM carries as well (`kubernetes.io/cluster/x`), where the convention has one. */
  readonly clusterTag?: string;
}

/** An owner named by one piece of evidence. */
export interface Attribution {
  readonly ref: OwnerRef;
  /** `owner-tag`, `claim`, or the convention's name (`gardener-mcm`, …). */
  readonly evidence: string;
  /** What was read: `tag node.k8s.amazonaws.com/instance_id=i-…`. */
  readonly detail: string;
}

/** `unknown` is every answer that is not a proof: failed, throttled, denied, partial, ambiguous. It keeps. */
export type OwnerState = 'alive' | 'gone' | 'unknown';

export interface OwnerAnswer {
  readonly state: OwnerState;
  /** Why, in the cloud's words: `terminated`, `absent from a complete answer`, `403 AuthorizationFailed`. */
  readonly detail: string;
  /** Native id and name where the answer has them. */
  readonly id?: string;
  readonly name?: string;
  readonly createdAt?: Date;
  /** How many VMs a name fitted; more than one keeps. */
  readonly matches?: number;
  /** Present when alive and the answer shows it: what hangs on the VM now (becomes claims). */
  readonly vm?: Vm;
}

/** A VM as one read of it shows it. */
export interface Vm {
  /** Native id: `i-…`, ARM id in original casing. */
  readonly id: string;
  /** Compared exactly: `aws:us-east-1:i-…`; Azure: `azure:` + lower-cased ARM id (+ `#` + vmId). */
  readonly key: string;
  readonly name: string;
  readonly place: string;
  readonly tags: Readonly<Record<string, string>>;
  /** As in {@link Resource.tagsIgnoreCase}. */
  readonly tagsIgnoreCase?: boolean;
  readonly state: OwnerState;
  readonly createdAt?: Date;
  /** Keys ({@link Resource.key}) of the NICs and disks attached to it. */
  readonly attachments: readonly Attachment[];
}

export interface Attachment {
  readonly key: string;
  readonly id: string;
  readonly kind: Kind;
}

/** One VM event, whatever the cloud's shape was. Personal data of the original is never carried over. */
export interface VmEvent {
  readonly eventId: string;
  readonly cloud: string;
  readonly change: 'started' | 'deleting' | 'deleted';
  /** Id of the {@link CloudScope} it belongs to. */
  readonly scopeId: string;
  /** Native VM id (AWS `i-…`; Azure ARM id). */
  readonly vmId: string;
  readonly place: string;
  readonly time: Date;
}

export type Judgement = 'keep' | 'wait' | 'reap';

/** Stable reason codes, documented in docs/reasons.md. A protection's own code follows in the evidence. */
export type Reason =
  | 'attached'
  | 'changing'
  | 'already-deleting'
  | 'gone'
  | 'unread'
  | 'protected'
  | 'locked'
  | 'opted-out'
  | 'excluded'
  | 'out-of-scope'
  | 'untagged'
  | 'owner-unknown'
  | 'owner-alive'
  | 'owner-unproven'
  | 'created-after-event'
  | 'time-odd'
  | 'too-young'
  | 'in-grace'
  | 'settling'
  | 'orphan';

export interface Verdict {
  readonly verdict: Judgement;
  readonly reason: Reason;
  readonly evidence: readonly string[];
  /** `wait`: when it would go if nothing changes. */
  readonly dueAt?: Date;
  /** `wait` and `reap`: when it became an orphan, as far as is known: detach time or first sighting. */
  readonly orphanSince?: Date;
  /** The owner that decided, or the first one named. */
  readonly owner?: { readonly attribution: Attribution; readonly answer: OwnerAnswer };
}

/** First sighting of a resource as an orphan; cleared when it is in use, owned or protected again. */
export interface Mark {
  readonly resourceKey: string;
  readonly firstSeen: Date;
  /** The native detach time as it was then: when it changes, somebody used the resource in between, and the mark is void. */
  readonly detachedAt?: Date;
}

/** Record, made while the owner was alive, that a resource serves it. */
export interface Claim {
  readonly resourceKey: string;
  readonly owner: OwnerRef;
  readonly ownerName: string;
  /** When the claim was first made: the resource existed then. */
  readonly since: Date;
}

export type Outcome = 'none' | 'would-delete' | 'deleted' | 'failed' | 'deferred';
export type Mode = 'observe' | 'enforce';
