import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { InputError } from '../core/errors.ts';
import {
  type Clock,
  LedgerConflict,
  type LedgerEntry,
  type LedgerKey,
  type LedgerQuery,
  type LedgerStore,
  type WriteCondition,
} from '../core/ports.ts';

const SCHEMA_VERSION = 1;
const PAGE = 500;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS entry (
    partition TEXT NOT NULL,
    sort TEXT NOT NULL,
    value TEXT NOT NULL,
    version TEXT NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (partition, sort)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS expiry ON entry (expires);
`;

/**
 * A ledger in one file, for the CLI. Several processes may share it: every write is one transaction, and a busy file is
 * waited for. Keys are compared as bytes, which for UTF-8 orders as code points do.
 */
export class SqliteLedger implements LedgerStore {
  readonly #db: DatabaseSync;
  readonly #clock: Pick<Clock, 'now'>;

  private constructor(db: DatabaseSync, clock: Pick<Clock, 'now'>) {
    this.#db = db;
    this.#clock = clock;
  }

  /**
   * Opens or makes the file, readable by its user alone, and removes what has expired.
   * @throws InputError when this Node has no SQLite, or the file is none of ours
   */
  static async open(
    file: string,
    clock: Pick<Clock, 'now'> = { now: () => new Date() },
    { readOnly = false }: { readOnly?: boolean } = {},
  ): Promise<SqliteLedger> {
    const sqlite = await import('node:sqlite').catch((cause: unknown) => {
      throw new InputError('ledger', 'SQLite needs Node 22.13 or newer; use --ledger memory, or a newer Node', {
        cause,
      });
    });
    try {
      if (readOnly) {
        const db = new sqlite.DatabaseSync(file, { readOnly: true, timeout: 10_000 });
        if (!isLedger(db)) throw new Error('holds no ledger');
        return new SqliteLedger(db, clock);
      }
      if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      const db = new sqlite.DatabaseSync(file, { timeout: 10_000 });
      isLedger(db);
      db.exec('PRAGMA journal_mode = WAL');
      // All at once: another process must never see half of it and take it for a stranger's.
      db.exec(`BEGIN IMMEDIATE; ${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
      if (file !== ':memory:') chmodSync(file, 0o600);
      const ledger = new SqliteLedger(db, clock);
      ledger.purge();
      return ledger;
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new InputError('ledger', `${file}: ${message}`, { cause });
    }
  }

  async get({ partition, sort }: LedgerKey): Promise<LedgerEntry | undefined> {
    const row = this.#db
      .prepare('SELECT * FROM entry WHERE partition = ? AND sort = ? AND expires > ?')
      .get(partition, sort, this.#nowMs());
    return row && toEntry(row);
  }

  async getMany(keys: readonly LedgerKey[]): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    for (const key of keys) {
      const entry = await this.get(key);
      if (entry) entries.push(entry);
    }
    return entries;
  }

  async put(key: LedgerKey, value: LedgerEntry['value'], expiresAt: Date, condition: WriteCondition): Promise<string> {
    const version = crypto.randomUUID();
    const values = [key.partition, key.sort, JSON.stringify(value), version, expiresAt.getTime()];
    const { sql, more } = upsert(condition, this.#nowMs());
    const { changes } = this.#db.prepare(sql).run(...values, ...more);
    if (Number(changes) === 0) throw new LedgerConflict(`${key.partition}/${key.sort}`);
    return version;
  }

  async delete({ partition, sort }: LedgerKey, condition?: { readonly version: string }): Promise<void> {
    if (!condition) {
      this.#db.prepare('DELETE FROM entry WHERE partition = ? AND sort = ?').run(partition, sort);
      return;
    }
    const sql = 'DELETE FROM entry WHERE partition = ? AND sort = ? AND version = ? AND expires > ?';
    const { changes } = this.#db.prepare(sql).run(partition, sort, condition.version, this.#nowMs());
    if (Number(changes) === 0) throw new LedgerConflict(`${partition}/${sort}`);
  }

  async *query(
    partition: string,
    { prefix = '', reverse = false, limit = Number.POSITIVE_INFINITY }: LedgerQuery = {},
  ) {
    const [than, order] = reverse ? ['<', 'DESC'] : ['>', 'ASC'];
    let left = limit;
    let after: string | undefined;
    while (left > 0) {
      const page = Math.min(PAGE, left);
      const rows = this.#db
        .prepare(
          `SELECT * FROM entry WHERE partition = ? AND substr(sort, 1, length(?)) = ? AND expires > ?
           AND (? IS NULL OR sort ${than} ?) ORDER BY sort ${order} LIMIT ?`,
        )
        .all(partition, prefix, prefix, this.#nowMs(), after ?? null, after ?? null, page);
      yield* rows.map(toEntry);
      if (rows.length < page) return;
      left -= rows.length;
      after = String(rows.at(-1)?.sort);
    }
  }

  /** Removes what has expired. */
  purge(): void {
    this.#db.prepare('DELETE FROM entry WHERE expires <= ?').run(this.#nowMs());
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #nowMs(): number {
    return this.#clock.now().getTime();
  }
}

/** False = an empty database. @throws Error where it is another program's or another Gleaner's, or no database at all */
function isLedger(db: DatabaseSync): boolean {
  const { version, tables } = db
    .prepare(
      'SELECT (SELECT user_version FROM pragma_user_version) AS version, (SELECT count(*) FROM sqlite_master) AS tables',
    )
    .get() as { version: number; tables: number };
  if (version === 0 && tables > 0) throw new Error('is the database of another program');
  if (version !== 0 && version !== SCHEMA_VERSION)
    throw new Error(`has schema ${version}, this Gleaner knows ${SCHEMA_VERSION}`);
  return version === SCHEMA_VERSION;
}

/** One statement for each condition, so that the check and the write are one step; an expired entry counts as absent. */
function upsert(condition: WriteCondition, nowMs: number): { sql: string; more: SQLInputValue[] } {
  const insert = 'INSERT INTO entry (partition, sort, value, version, expires)';
  const update = 'UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires';
  if (condition === 'any') {
    return { sql: `${insert} VALUES (?, ?, ?, ?, ?) ON CONFLICT DO ${update}`, more: [] };
  }
  if (condition === 'absent') {
    return { sql: `${insert} VALUES (?, ?, ?, ?, ?) ON CONFLICT DO ${update} WHERE entry.expires <= ?`, more: [nowMs] };
  }
  // Numbered parameters: the values are bound once and used in order, then the version and the time.
  const sql =
    'UPDATE entry SET value = ?3, version = ?4, expires = ?5 WHERE partition = ?1 AND sort = ?2 AND version = ?6 AND expires > ?7';
  return { sql, more: [condition.version, nowMs] };
}

function toEntry(row: Record<string, unknown>): LedgerEntry {
  return {
    partition: String(row.partition),
    sort: String(row.sort),
    value: JSON.parse(String(row.value)) as LedgerEntry['value'],
    version: String(row.version),
    expiresAt: new Date(Number(row.expires)),
  };
}
