import type { Claim, Mark, OwnerRef, Vm } from './model.ts';
import type { Json, LedgerEntry } from './ports.ts';
import type { ReportItem } from './report.ts';

/** What the ledger's entries hold, and how they are read and written: core's words on one side, JSON on the other. */
export type Fields = LedgerEntry['value'];

/** What a scope's owners were when last seen. */
export interface OwnerRecord {
  readonly vmKey: string;
  readonly id: string;
  readonly name: string;
  readonly place: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly state: 'alive' | 'gone';
  readonly attachments: Vm['attachments'];
}

/** The record of a deletion: the item as reported, and what restoring it needs. Written as it stands. */
export interface Tombstone extends ReportItem {
  readonly runId: string;
  readonly scopeId: string;
  readonly type: string;
  readonly key: string;
  readonly place: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly sizeGiB: number | null;
  readonly restore: Readonly<Record<string, string | number | boolean>> | null;
  readonly snapshotId: string | null;
  /** ISO 8601; absent as long as the deletion is only intended. */
  readonly at?: string;
  /** The run that completed the record, where it was not the one that deleted. */
  readonly completedBy?: string;
}

/** A deletion that was begun and of which nobody has yet said how it ended. */
export interface Intent {
  readonly resourceKey: string;
  readonly item: Tombstone;
  readonly runId: string;
  readonly at: Date;
}

export interface BreakerState {
  readonly trippedAt: Date;
  readonly gone: number;
  readonly known: number;
}

/** As written, without what attribution cannot use. */
export function ownerValue(
  vm: Omit<Vm, 'state' | 'attachments'>,
  state: 'alive' | 'gone',
  attachments: Vm['attachments'],
): Fields {
  return {
    id: vm.id,
    name: vm.name,
    place: vm.place,
    tags: clusterTags(vm.tags),
    state,
    attachments: attachments.map(({ key, id, kind }) => ({ key, id, kind })),
  };
}

/** Only tags that attribution can use: the rest may hold anything, and is not ours to store. */
function clusterTags(tags: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).filter(([key]) => /cluster|role|^name$/i.test(key)));
}

export function toOwner(entry: LedgerEntry): OwnerRecord {
  const { id, name, place, tags, state, attachments } = entry.value;
  return {
    vmKey: entry.sort,
    id: text(id),
    name: text(name),
    place: text(place),
    tags: tags as Record<string, string>,
    state: state === 'alive' ? 'alive' : 'gone',
    attachments: attachments as unknown as Vm['attachments'],
  };
}

export function toClaim(entry: LedgerEntry): Claim {
  const { owner, place, name, since } = entry.value;
  const ref: OwnerRef = { by: 'id', value: text(owner), place: text(place) };
  return { resourceKey: entry.sort, owner: ref, ownerName: text(name), since: time(since) };
}

export function toMark(entry: LedgerEntry): Mark {
  const { firstSeen, detachedAt } = entry.value;
  const mark = { resourceKey: entry.sort, firstSeen: time(firstSeen) };
  return typeof detachedAt === 'string' ? { ...mark, detachedAt: time(detachedAt) } : mark;
}

export function toIntent(entry: LedgerEntry): Intent {
  const { item, runId, at } = entry.value;
  return { resourceKey: entry.sort, item: item as unknown as Tombstone, runId: text(runId), at: time(at) };
}

/** Leaves out what is undefined, as JSON does. */
export const toJson = (tombstone: Tombstone) => JSON.parse(JSON.stringify(tombstone)) as Fields;

export const text = (value: Json | undefined) => (typeof value === 'string' ? value : '');
/** An unreadable time becomes an invalid Date, which the judge refuses: odd times protect. */
export const time = (value: Json | undefined) => new Date(typeof value === 'string' ? value : Number.NaN);
