import type { World } from '../world/world.ts';

interface Row<T> {
  readonly id: string;
  readonly place: number;
  now: T | undefined;
  shown: T | undefined;
  /** How often it was changed, and which of the changes readers see: a late one never undoes a later one. */
  changes: number;
  shownChange: number;
}

/**
 * Rows of one kind in the order of their creation, so that a page's token is a place in it. Reads that EC2 serves from
 * replicas see a change only after `lagMs`; writes and their checks see it at once.
 */
export class Table<T> {
  readonly #world: World;
  readonly #isFree: (value: T) => boolean;
  readonly #rows: (Row<T> | undefined)[] = [];
  readonly #index = new Map<string, Row<T>>();
  /** Places of the rows that readers see as free: few among many, and all that a sweep asks for. May hold some that no longer are. */
  #free: number[] = [];
  #isFreeSorted = true;
  lagMs = 0;

  constructor(world: World, isFree: (value: T) => boolean = () => false) {
    this.#world = world;
    this.#isFree = isFree;
  }

  set(id: string, value: T | undefined): void {
    let row = this.#index.get(id);
    if (!row) {
      row = { id, place: this.#rows.length, now: undefined, shown: undefined, changes: 0, shownChange: 0 };
      this.#rows.push(row);
      this.#index.set(id, row);
    }
    row.now = value;
    row.changes += 1;
    const changed = row;
    const change = row.changes;
    if (this.lagMs === 0) this.#show(changed, value, change);
    else
      this.#world.at(new Date(this.#world.clock.now().getTime() + this.lagMs), () =>
        this.#show(changed, value, change),
      );
  }

  /** As it is. */
  get(id: string): T | undefined {
    return this.#index.get(id)?.now;
  }

  /** As a describe call sees it. */
  seen(id: string): T | undefined {
    return this.#index.get(id)?.shown;
  }

  *all(): Iterable<T> {
    for (const row of this.#rows) if (row?.now !== undefined) yield row.now;
  }

  /**
   * Rows that `matches`, from place `from`, at most `limit`; `next` is the place after the last, if there is more.
   * `onlyFree` looks among the free ones alone; `matches` must want no others.
   */
  page(from: number, limit: number, matches: (value: T) => boolean, onlyFree = false): { rows: T[]; next?: number } {
    const rows: T[] = [];
    for (const place of onlyFree ? this.#freeFrom(from) : this.#placesFrom(from)) {
      const shown = this.#rows[place]?.shown;
      if (shown === undefined || !matches(shown)) continue;
      if (rows.length === limit) return { rows, next: place };
      rows.push(shown);
    }
    return { rows };
  }

  *#placesFrom(from: number): Iterable<number> {
    for (let place = from; place < this.#rows.length; place += 1) yield place;
  }

  *#freeFrom(from: number): Iterable<number> {
    if (!this.#isFreeSorted) {
      const isStillFree = (place: number) => {
        const shown = this.#rows[place]?.shown;
        return shown !== undefined && this.#isFree(shown);
      };
      this.#free = [...new Set(this.#free)].filter(isStillFree).sort((a, b) => a - b);
      this.#isFreeSorted = true;
    }
    let low = 0;
    for (let high = this.#free.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#free[middle] as number) < from) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < this.#free.length; at += 1) yield this.#free[at] as number;
  }

  #show(row: Row<T>, value: T | undefined, change: number): void {
    if (change < row.shownChange) return;
    row.shownChange = change;
    const wasFree = row.shown !== undefined && this.#isFree(row.shown);
    row.shown = value;
    if (value !== undefined && !wasFree && this.#isFree(value)) {
      if (row.place <= (this.#free.at(-1) ?? -1)) this.#isFreeSorted = false;
      this.#free.push(row.place);
    }
    // What is gone for good leaves its place empty, so that other places keep their numbers.
    if (row.now !== undefined || value !== undefined || this.#rows[row.place] === undefined) return;
    this.#index.delete(row.id);
    this.#rows[row.place] = undefined;
  }
}
