import {
  type Clock,
  LedgerConflict,
  type LedgerEntry,
  type LedgerKey,
  type LedgerQuery,
  type LedgerStore,
  type WriteCondition,
} from '../core/ports.ts';

/** A ledger that lives as long as its process: for tests, the demo, and one-off runs that need no memory. */
export class MemoryLedger implements LedgerStore {
  readonly #partitions = new Map<string, Map<string, LedgerEntry>>();
  readonly #clock: Pick<Clock, 'now'>;
  #version = 0;

  constructor(clock: Pick<Clock, 'now'> = { now: () => new Date() }) {
    this.#clock = clock;
  }

  async get(key: LedgerKey): Promise<LedgerEntry | undefined> {
    return structuredClone(this.#live(key));
  }

  async getMany(keys: readonly LedgerKey[]): Promise<LedgerEntry[]> {
    const entries = await Promise.all(keys.map((key) => this.get(key)));
    return entries.filter((entry) => entry !== undefined);
  }

  async put(key: LedgerKey, value: LedgerEntry['value'], expiresAt: Date, condition: WriteCondition): Promise<string> {
    const current = this.#live(key);
    const holds = condition === 'any' || (condition === 'absent' ? !current : current?.version === condition.version);
    if (!holds) throw new LedgerConflict(`${key.partition}/${key.sort}`);
    this.#version += 1;
    const version = String(this.#version);
    const partition = this.#partitions.get(key.partition) ?? new Map<string, LedgerEntry>();
    this.#partitions.set(key.partition, partition);
    partition.set(key.sort, structuredClone({ ...key, value, version, expiresAt }));
    return version;
  }

  async delete(key: LedgerKey, condition?: { readonly version: string }): Promise<void> {
    const current = this.#live(key);
    if (condition && current?.version !== condition.version) throw new LedgerConflict(`${key.partition}/${key.sort}`);
    this.#partitions.get(key.partition)?.delete(key.sort);
  }

  async *query(
    partition: string,
    { prefix = '', reverse = false, limit = Number.POSITIVE_INFINITY }: LedgerQuery = {},
  ) {
    const sorts = [...(this.#partitions.get(partition)?.keys() ?? [])].filter((sort) => sort.startsWith(prefix)).sort();
    let left = limit;
    for (const sort of reverse ? sorts.reverse() : sorts) {
      if (left <= 0) return;
      const entry = await this.get({ partition, sort });
      if (!entry) continue;
      left -= 1;
      yield entry;
    }
  }

  async close(): Promise<void> {}

  /** Without a pause, so that a check and its write are one step. */
  #live({ partition, sort }: LedgerKey): LedgerEntry | undefined {
    const entry = this.#partitions.get(partition)?.get(sort);
    return entry && entry.expiresAt > this.#clock.now() ? entry : undefined;
  }
}
