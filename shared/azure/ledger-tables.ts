import type { TableClient, TableEntityResult } from '@azure/data-tables';
import pMap from 'p-map';
import {
  type Clock,
  LedgerConflict,
  type LedgerEntry,
  type LedgerKey,
  type LedgerQuery,
  type LedgerStore,
  type WriteCondition,
} from '../core/ports.ts';
import { insecure, type StorageAccess, statusOf } from './storage.ts';
import { afterPrefix, decodeKey, encodeKey } from './table-keys.ts';

/** A string property holds 64 KiB of UTF-16. */
const CHUNK = 32_000;
/** Tables have no batch of reads. */
const GETS_AT_ONCE = 32;
const DELETES_AT_ONCE = 16;

export interface TablesOptions {
  readonly access: StorageAccess;
  readonly table: string;
  readonly clock: Pick<Clock, 'now'>;
}

type Row = TableEntityResult<Record<string, unknown>>;

/**
 * A ledger in one table of Azure Table Storage: the value as JSON in `v0`, `v1`, …, `expires` as ISO 8601, the etag as
 * version. Tables remove nothing by themselves: what has expired is filtered here, and {@link purge} removes it.
 */
export class TablesLedger implements LedgerStore {
  readonly #options: TablesOptions;
  #client: Promise<TableClient> | undefined;

  constructor(options: TablesOptions) {
    this.#options = options;
  }

  async get(key: LedgerKey): Promise<LedgerEntry | undefined> {
    return this.#live(await this.#read(key));
  }

  async getMany(keys: readonly LedgerKey[]): Promise<LedgerEntry[]> {
    const distinct = [...new Map(keys.map((key) => [`${key.partition}\n${key.sort}`, key])).values()];
    const entries = await pMap(distinct, (key) => this.get(key), { concurrency: GETS_AT_ONCE });
    return entries.filter((entry) => entry !== undefined);
  }

  async put(key: LedgerKey, value: LedgerEntry['value'], expiresAt: Date, condition: WriteCondition): Promise<string> {
    const client = await this.#table();
    const write = crypto.randomUUID();
    const entity = { ...keyOf(key), ...chunked(JSON.stringify(value)), expires: expiresAt.toISOString(), write };
    if (condition === 'any') return versionOf(await client.upsertEntity(entity, 'Replace'));
    if (condition === 'absent') {
      try {
        return versionOf(await client.createEntity(entity));
      } catch (cause) {
        if (statusOf(cause) !== 409) throw cause;
      }
    }
    // A change or removal between this read and the write is refused by the etag.
    const there = await this.#read(key);
    // An answer that got lost on its way is asked for again, and is refused because of our own write.
    if (there?.write === write) return versionOf(there);
    const alive = this.#live(there) !== undefined;
    const holds = condition === 'absent' ? !alive : alive && there?.etag === condition.version;
    if (!there || !holds) throw new LedgerConflict(`${key.partition}/${key.sort}`);
    const etag = there.etag;
    try {
      return await conditional(key, async () => versionOf(await client.updateEntity(entity, 'Replace', { etag })));
    } catch (error) {
      const now = error instanceof LedgerConflict ? await this.#read(key) : undefined;
      if (now?.write !== write) throw error;
      return versionOf(now);
    }
  }

  async delete(key: LedgerKey, condition?: { readonly version: string }): Promise<void> {
    const client = await this.#table();
    const { partitionKey, rowKey } = keyOf(key);
    if (condition) {
      await conditional(key, () => client.deleteEntity(partitionKey, rowKey, { etag: condition.version }));
    } else await unlessMissing(client.deleteEntity(partitionKey, rowKey, { etag: '*' }));
  }

  async *query(
    partition: string,
    { prefix = '', reverse = false, limit = Number.POSITIVE_INFINITY }: LedgerQuery = {},
  ): AsyncGenerator<LedgerEntry> {
    let left = limit;
    for await (const entry of reverse ? this.#backwards(partition, prefix) : this.#forwards(partition, prefix)) {
      if (left <= 0) return;
      left -= 1;
      yield entry;
      if (left <= 0) return;
    }
  }

  /** Removes what has expired by then; returns how many entries. Reads the whole table: for a timer, not for a call. */
  async purge(now: Date): Promise<number> {
    const client = await this.#table();
    const { odata } = await import('@azure/data-tables');
    const filter = odata`expires le ${now.toISOString()}`;
    const select = ['PartitionKey', 'RowKey', 'partitionKey', 'rowKey', 'expires'];
    let purged = 0;
    for await (const page of client.listEntities({ queryOptions: { filter, select } }).byPage()) {
      await pMap(
        page,
        async ({ partitionKey, rowKey, etag }) => {
          // One that was written again meanwhile is not expired any more, and its etag is another.
          if (await removed(client.deleteEntity(partitionKey ?? '', rowKey ?? '', { etag }))) purged += 1;
        },
        { concurrency: DELETES_AT_ONCE },
      );
    }
    return purged;
  }

  async close(): Promise<void> {}

  async *#forwards(partition: string, prefix: string): AsyncGenerator<LedgerEntry> {
    const client = await this.#table();
    const { odata } = await import('@azure/data-tables');
    const from = encodeKey(prefix);
    const filter =
      prefix === ''
        ? odata`PartitionKey eq ${encodeKey(partition)}`
        : odata`PartitionKey eq ${encodeKey(partition)} and RowKey ge ${from} and RowKey lt ${afterPrefix(from)}`;
    for await (const row of client.listEntities<Record<string, unknown>>({ queryOptions: { filter } })) {
      const entry = this.#live(row);
      if (entry) yield entry;
    }
  }

  /** Tables are read in one direction only. What is read backwards are tombstones and runs, few and small. */
  async *#backwards(partition: string, prefix: string): AsyncGenerator<LedgerEntry> {
    yield* (await Array.fromAsync(this.#forwards(partition, prefix))).reverse();
  }

  async #read(key: LedgerKey): Promise<Row | undefined> {
    const client = await this.#table();
    const { partitionKey, rowKey } = keyOf(key);
    try {
      return await client.getEntity<Record<string, unknown>>(partitionKey, rowKey);
    } catch (cause) {
      // A table that is not there is a wrong deployment, and no proof that the entry is absent.
      if (statusOf(cause) === 404 && !/TableNotFound/.test(codeOf(cause))) return undefined;
      throw cause;
    }
  }

  #live(row: Row | undefined): LedgerEntry | undefined {
    if (!row) return undefined;
    const expiresAt = new Date(String(row.expires));
    if (!(expiresAt > this.#options.clock.now())) return undefined;
    return {
      partition: decodeKey(row.partitionKey ?? ''),
      sort: decodeKey(row.rowKey ?? ''),
      value: JSON.parse(joined(row)) as LedgerEntry['value'],
      version: row.etag,
      expiresAt,
    };
  }

  #table(): Promise<TableClient> {
    this.#client ??= import('@azure/data-tables').then(({ TableClient: Client }) => {
      const { access, table } = this.#options;
      const options = { allowInsecureConnection: insecure(access), retryOptions: { maxRetries: 5 } };
      return 'url' in access
        ? new Client(access.url, table, access.credential, options)
        : Client.fromConnectionString(access.connectionString, table, options);
    });
    return this.#client;
  }
}

function keyOf({ partition, sort }: LedgerKey): { partitionKey: string; rowKey: string } {
  return { partitionKey: encodeKey(partition), rowKey: encodeKey(sort) };
}

function chunked(text: string): Record<string, string> {
  const properties: Record<string, string> = {};
  for (let start = 0, index = 0; start < text.length; index += 1) {
    let end = Math.min(start + CHUNK, text.length);
    // Half of a pair is no text.
    if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? '')) end -= 1;
    properties[`v${index}`] = text.slice(start, end);
    start = end;
  }
  return properties;
}

function joined(row: Row): string {
  let text = '';
  for (let index = 0; typeof row[`v${index}`] === 'string'; index += 1) text += row[`v${index}`];
  return text;
}

function versionOf({ etag }: { etag?: string }): string {
  if (!etag) throw new Error('the table gave no etag for what was written');
  return etag;
}

async function conditional<T>(key: LedgerKey, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (lost(cause)) throw new LedgerConflict(`${key.partition}/${key.sort}`, { cause });
    throw cause;
  }
}

/** Gone, or changed since. */
function lost(cause: unknown): boolean {
  return statusOf(cause) === 412 || (statusOf(cause) === 404 && !/TableNotFound/.test(codeOf(cause)));
}

async function unlessMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (cause) {
    if (statusOf(cause) !== 404) throw cause;
  }
}

async function removed(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (cause) {
    if (lost(cause)) return false;
    throw cause;
  }
}

function codeOf(cause: unknown): string {
  const details = cause instanceof Error && 'details' in cause ? JSON.stringify(cause.details) : '';
  return `${cause instanceof Error ? cause.message : ''} ${details}`;
}
