export interface Due {
  readonly atMs: number;
  readonly run: () => void;
}

interface Entry extends Due {
  readonly serial: number;
}

/** What happens later, earliest first; of two at the same instant, the one that was put down first. A binary heap: a lag over a large estate puts down one entry a resource. */
export class Agenda {
  readonly #heap: Entry[] = [];
  #serial = 0;

  add(atMs: number, run: () => void): void {
    this.#serial += 1;
    const heap = this.#heap;
    heap.push({ atMs, run, serial: this.#serial });
    let place = heap.length - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#swapIfBefore(place, parent)) return;
      place = parent;
    }
  }

  /** When the next one falls due. */
  get nextMs(): number | undefined {
    return this.#heap[0]?.atMs;
  }

  /** Takes out everything that is due by `untilMs`. What it puts down in turn is for the next time. */
  takeUntil(untilMs: number): Due[] {
    const due: Due[] = [];
    for (let first = this.#heap[0]; first && first.atMs <= untilMs; first = this.#heap[0]) {
      due.push(first);
      this.#removeFirst();
    }
    return due;
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (!last || this.#heap.length === 0) return;
    this.#heap[0] = last;
    let place = 0;
    for (;;) {
      const left = 2 * place + 1;
      if (left >= this.#heap.length) return;
      const child = left + 1 < this.#heap.length && this.#isBefore(left + 1, left) ? left + 1 : left;
      if (!this.#swapIfBefore(child, place)) return;
      place = child;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]] as [Entry, Entry];
    return one.atMs === other.atMs ? one.serial < other.serial : one.atMs < other.atMs;
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#isBefore(a, b)) return false;
    [this.#heap[a], this.#heap[b]] = [this.#heap[b] as Entry, this.#heap[a] as Entry];
    return true;
  }
}
