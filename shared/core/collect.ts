import type { KnownOwners } from './breaker.ts';
import { asCloudError, CloudError } from './errors.ts';
import { askOwners, type Judged, judgeSighting, keepMark, type Sighting, sight } from './look.ts';
import type { OwnerRef, Resource } from './model.ts';
import { OWNER_BATCH, type OwnerBook } from './owner-book.ts';
import { type CloudScope, type ListFilter, ownerKey, type ResourceType } from './ports.ts';
import { hasTime, messageOf, type Run } from './run.ts';

const OUT_OF_TIME = 'OutOfTime';
/** Sightings that wait for a whole batch of owners to ask about. */
const MAX_PENDING = 2000;

export interface Collected {
  /** Orphans to delete, at most as many as the budget has left. */
  readonly orphans: Judged[];
  /** Types whose listing did not end; nothing of them may be deleted. */
  readonly incomplete: Set<string>;
  /** Keys of what was listed and has a mark, from before or from now. */
  readonly marked: Set<string>;
}

/**
 * Lists, asks, judges: a stream, so that memory does not grow with what is listed. Resources are listed first and owners
 * asked second, so that a slow listing errs towards keeping; owners are asked in whole batches over all pages and types.
 */
export class Collector {
  readonly #run: Run;
  readonly #scope: CloudScope;
  readonly #book: OwnerBook;
  readonly #owners: KnownOwners;
  readonly #room: number;
  readonly result: Collected = { orphans: [], incomplete: new Set(), marked: new Set() };
  #pending: Sighting[] = [];
  readonly #open = new Map<string, OwnerRef>();

  /** `room`: how many orphans to hold at most; what is found beyond is reported as deferred. */
  constructor(run: Run, scope: CloudScope, book: OwnerBook, owners: KnownOwners, room: number) {
    this.#run = run;
    this.#scope = scope;
    this.#book = book;
    this.#owners = owners;
    this.#room = room;
  }

  /** One type, to its end or to the error that makes its listing incomplete. */
  async list(type: ResourceType, filter: ListFilter): Promise<void> {
    try {
      for await (const page of type.list(filter, this.#run.signal)) {
        if (!hasTime(this.#run)) throw outOfTime(type);
        await this.add(page);
      }
    } catch (cause) {
      const error = asCloudError(cause, `list ${type.name}`);
      this.result.incomplete.add(type.name);
      this.#run.report.incomplete(error);
      if (error.nativeCode === OUT_OF_TIME) this.#run.report.stop('time');
      this.#run.log.error(
        { type: type.name, code: error.code, error: messageOf(error) },
        'listing incomplete: nothing of it is deleted',
      );
    }
  }

  async add(page: readonly Resource[]): Promise<void> {
    for (const sighting of await sight(this.#run, this.#scope, page)) {
      this.#pending.push(sighting);
      for (const ref of sighting.refs) if (!this.#book.answer(ref)) this.#open.set(ownerKey(ref), ref);
    }
    // Whole batches keep the number of calls at its least; but what waits for one must not pile up.
    const count =
      this.#pending.length > MAX_PENDING ? this.#open.size : Math.floor(this.#open.size / OWNER_BATCH) * OWNER_BATCH;
    await this.#ask([...this.#open.values()].slice(0, count));
  }

  /** Asks about the rest; after this everything that was listed is judged. */
  async end(): Promise<Collected> {
    await this.#ask([...this.#open.values()]);
    return this.result;
  }

  async #ask(refs: readonly OwnerRef[]): Promise<void> {
    if (refs.length > 0) await askOwners(this.#run, this.#scope, refs, this.#book);
    for (const ref of refs) this.#open.delete(ownerKey(ref));
    const ready = this.#pending.filter((one) => !one.refs.some((ref) => this.#open.has(ownerKey(ref))));
    this.#pending = this.#pending.filter((one) => one.refs.some((ref) => this.#open.has(ownerKey(ref))));
    for (const sighting of ready) await this.#judge(sighting);
  }

  async #judge(sighting: Sighting): Promise<void> {
    const run = this.#run;
    this.#owners.count(sighting.refs, this.#book);
    const verdict = judgeSighting(run, this.#scope, sighting, this.#book);
    await keepMark(run, this.#scope, sighting, verdict);
    if (verdict.verdict !== 'keep') this.result.marked.add(sighting.resource.key);
    if (verdict.verdict !== 'reap') return run.report.item(sighting.resource, verdict, 'none');
    if (this.result.orphans.length < this.#room) {
      this.result.orphans.push({ ...sighting, verdict });
      return;
    }
    run.report.stop('budget');
    run.report.item(sighting.resource, verdict, 'deferred', ['budget of this run used up']);
  }
}

function outOfTime(type: ResourceType): CloudError {
  const message = 'no time left in this run: the listing was not read to its end';
  return new CloudError({ code: 'unavailable', nativeCode: OUT_OF_TIME, operation: `list ${type.name}`, message });
}
