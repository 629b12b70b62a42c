import { LRUCache } from 'lru-cache';
import type { OwnerAnswer, OwnerRef } from './model.ts';
import type { Clock, OwnerDirectory } from './ports.ts';
import { ownerKey } from './ports.ts';

/** How many owners one lookup of a cloud takes at most; asking in whole batches keeps the number of calls at ⌈owners / 200⌉. */
export const OWNER_BATCH = 200;
/**
 * A VM can be made again under its name, and in some clouds under its id as well: answers age. Long enough for a run's
 * whole budget at the clouds' own pace of deletions, so that each owner is still asked once.
 */
const ANSWER_TTL_MS = 2 * 60_000;
const MAX_ANSWERS = 20_000;

interface Known {
  readonly answer: OwnerAnswer;
  readonly atMs: number;
}

/** One run's answers about owners, each asked once. Bounded: what falls out is asked again. */
export class OwnerBook {
  readonly #directory: OwnerDirectory;
  readonly #clock: Clock;
  readonly #known = new LRUCache<string, Known>({ max: MAX_ANSWERS });
  /** Questions on their way: batches that run side by side share an owner's answer. */
  readonly #asking = new Map<string, Promise<unknown>>();

  constructor(directory: OwnerDirectory, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** The answer if it still holds. */
  answer(ref: OwnerRef): OwnerAnswer | undefined {
    const known = this.#known.get(ownerKey(ref));
    if (!known) return undefined;
    const ageMs = this.#clock.now().getTime() - known.atMs;
    return ageMs < ANSWER_TTL_MS ? known.answer : undefined;
  }

  /** Asks about what is not known yet; returns the answers to its own questions. A ref that the directory left out is unknown. */
  async ask(refs: readonly OwnerRef[], signal: AbortSignal): Promise<OwnerAnswer[]> {
    const open = new Map(refs.filter((ref) => !this.answer(ref)).map((ref) => [ownerKey(ref), ref]));
    const asked = [...open.keys()].flatMap((key) => this.#asking.get(key) ?? []);
    const mine = new Map([...open].filter(([key]) => !this.#asking.has(key)));
    const answers = mine.size === 0 ? [] : await this.#askAll(mine, signal);
    await Promise.all(asked);
    return answers;
  }

  async #askAll(open: ReadonlyMap<string, OwnerRef>, signal: AbortSignal): Promise<OwnerAnswer[]> {
    const lookup = this.#directory.lookup([...open.values()], signal);
    for (const key of open.keys()) this.#asking.set(key, lookup);
    try {
      const answers = await lookup;
      const atMs = this.#clock.now().getTime();
      return [...open.keys()].map((key) => {
        const answer = answers.get(key) ?? { state: 'unknown', detail: 'no answer' };
        this.#known.set(key, { answer, atMs });
        return answer;
      });
    } finally {
      for (const key of open.keys()) this.#asking.delete(key);
    }
  }

  /** Everything that was found gone so far. */
  gone(ref: OwnerRef): boolean {
    return this.answer(ref)?.state === 'gone';
  }
}
