import type { World } from '../world/world.ts';

interface Row<T> {
  readonly id: string;
  now: T | undefined;
  shown: T | undefined;
}

/**
 * Rows of one kind in the order of their creation, so that a page's token is a place in it. Reads that EC2 serves from
 * replicas see a change only after `lagMs`; writes and their checks see it at once.
 */
export class Table<T> {
  readonly #world: World;
  readonly #rows: (Row<T> | undefined)[] = [];
  readonly #index = new Map<string, Row<T>>();
  lagMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  set(id: string, value: T | undefined): void {
    let row = this.#index.get(id);
    if (!row) {
      row = { id, now: undefined, shown: undefined };
      this.#rows.push(row);
      this.#index.set(id, row);
    }
    row.now = value;
    if (this.lagMs === 0) this.#show(row, value);
    else this.#world.at(new Date(this.#world.clock.now().getTime() + this.lagMs), () => this.#show(row, value));
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

  /** Rows that `matches`, from place `from`, at most `limit`; `next` is the place after the last, if there is more. */
  page(from: number, limit: number, matches: (value: T) => boolean): { rows: T[]; next?: number } {
    const rows: T[] = [];
    for (let place = from; place < this.#rows.length; place += 1) {
      const shown = this.#rows[place]?.shown;
      if (shown === undefined || !matches(shown)) continue;
      if (rows.length === limit) return { rows, next: place };
      rows.push(shown);
    }
    return { rows };
  }

  #show(row: Row<T>, value: T | undefined): void {
    row.shown = value;
    // What is gone for good leaves its place empty, so that other places keep their numbers.
    if (row.now !== undefined || value !== undefined) return;
    this.#index.delete(row.id);
    const place = this.#rows.indexOf(row);
    if (place >= 0 && this.#rows.length < 100_000) this.#rows[place] = undefined;
  }
}
