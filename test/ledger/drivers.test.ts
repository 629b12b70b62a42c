import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoLedger } from '../../shared/aws/ledger-dynamodb.ts';
import { TablesLedger } from '../../shared/azure/ledger-tables.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { SqliteLedger } from '../../shared/local/ledger-sqlite.ts';
import { startProxy } from '../support/aws-proxy.ts';
import { type Azurite, startAzurite } from '../support/azurite.ts';
import { awsEnvironment, createTable, type Moto, motoMissing, startMoto } from '../support/moto.ts';
import { ledgerContract } from './contract.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'gleaner-ledger-'));
afterAll(() => rmSync(folder, { recursive: true }));

ledgerContract('memory', { open: async (clock) => new MemoryLedger(clock) });
ledgerContract('sqlite', { open: (clock) => SqliteLedger.open(join(folder, 'contract.db'), clock) });

describe.skipIf(motoMissing())('on moto', () => {
  let moto: Moto;
  beforeAll(async () => {
    moto = await startMoto();
    Object.assign(process.env, awsEnvironment(moto.url));
    await createTable(moto.url);
  });
  afterAll(() => moto.stop());
  const sleep = async () => {};
  ledgerContract('dynamodb', {
    // Seen under load: 49 of 50. DynamoDB itself checks and writes in one step.
    racy: 'moto checks a condition and writes in two steps, on several threads',
    open: async (clock) =>
      new DynamoLedger({ region: 'us-east-1', table: 'gleaner', clock: { now: () => clock.now(), sleep } }),
  });
});

describe('on azurite', () => {
  let azurite: Azurite;
  beforeAll(async () => {
    azurite = await startAzurite();
    const { TableClient } = await import('@azure/data-tables');
    const client = TableClient.fromConnectionString(azurite.connectionString, 'gleaner', {
      allowInsecureConnection: true,
    });
    await client.createTable();
  }, 60_000);
  afterAll(() => azurite.stop());
  const open = async (clock: { now(): Date }) =>
    new TablesLedger({ access: { connectionString: azurite.connectionString }, table: 'gleaner', clock });
  ledgerContract('tables', { open });

  it('removes what has expired, and only that', async () => {
    const now = new Date('2026-12-01T12:00:00Z');
    const store = await open({ now: () => new Date(0) });
    for (let index = 0; index < 5; index += 1) {
      await store.put(
        { partition: 'purge', sort: `${index}` },
        {},
        new Date(now.getTime() + (index - 2) * 1000),
        'any',
      );
    }
    expect(await store.purge(now)).toBeGreaterThanOrEqual(3);
    expect((await Array.fromAsync(store.query('purge'))).map(({ sort }) => sort)).toEqual(['3', '4']);
    expect(await store.purge(now)).toBe(0);
  });
});

describe.skipIf(motoMissing())('dynamodb, where an answer gets lost', () => {
  it('knows its own write when it is asked for again', async () => {
    const moto = await startMoto();
    // Forwards every request; of the first put the answer never arrives.
    let puts = 0;
    const proxy = await startProxy(
      () => moto.url,
      () => {},
      (target) => target.endsWith('PutItem') && ++puts === 1,
    );
    try {
      Object.assign(process.env, awsEnvironment(moto.url));
      await createTable(moto.url);
      Object.assign(process.env, awsEnvironment(proxy.url));
      const clock = { now: () => new Date(), sleep: async () => {} };
      const store = new DynamoLedger({ region: 'us-east-1', table: 'gleaner', clock });
      const version = await store.put({ partition: 'p', sort: 's' }, { n: 1 }, new Date('2030-01-01'), 'absent');
      expect(puts).toBe(2);
      expect(await store.get({ partition: 'p', sort: 's' })).toMatchObject({ version, value: { n: 1 } });
    } finally {
      await proxy.close();
      await moto.stop();
    }
  });
});

describe('ledger drivers', () => {
  it('are all held by the contract', () => {
    const files = globSync('shared/*/ledger-*.ts', { cwd: ROOT }).sort();
    const held = [
      'shared/aws/ledger-dynamodb.ts',
      'shared/azure/ledger-tables.ts',
      'shared/local/ledger-memory.ts',
      'shared/local/ledger-sqlite.ts',
    ];
    expect(files.filter((file) => !held.includes(file))).toEqual([]);
  });
});

describe('sqlite', () => {
  it('makes a file that only its user reads, and remembers over processes', async () => {
    const file = join(folder, 'deep', 'er', 'own.db');
    const first = await SqliteLedger.open(file);
    await first.put({ partition: 'p', sort: 's' }, { n: 1 }, new Date('2030-01-01'), 'any');
    await first.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = await SqliteLedger.open(file);
    expect((await second.get({ partition: 'p', sort: 's' }))?.value).toEqual({ n: 1 });
    await second.close();
  });

  it.each([false, true])(
    'refuses what is no ledger of ours, naming it, and changes nothing (to read: %s)',
    async (readOnly) => {
      const junk = join(folder, 'junk.db');
      writeFileSync(junk, 'this is no database, and long enough to be read as one '.repeat(100));
      const foreign = join(folder, `foreign-${readOnly}.db`);
      const newer = join(folder, `newer-${readOnly}.db`);
      for (const [file, sql] of [
        [foreign, 'CREATE TABLE theirs (a)'],
        [newer, 'CREATE TABLE entry (a); PRAGMA user_version = 99'],
      ] as const) {
        const db = new DatabaseSync(file);
        db.exec(sql);
        db.close();
      }
      for (const [file, why] of [
        [junk, /not a database/],
        [foreign, /of another program/],
        [newer, /has schema 99/],
      ] as const) {
        const before = readFileSync(file);
        const opened = SqliteLedger.open(file, undefined, { readOnly });
        await expect(opened).rejects.toMatchObject({
          name: 'InputError',
          field: 'ledger',
          message: expect.stringMatching(why),
        });
        expect(readFileSync(file).equals(before)).toBe(true);
      }
    },
  );

  it('lets two processes count together without losing anything', async () => {
    const file = join(folder, 'shared.db');
    const script = `
      const { SqliteLedger } = await import(${JSON.stringify(join(ROOT, 'shared/local/ledger-sqlite.ts'))});
      const store = await SqliteLedger.open(${JSON.stringify(file)});
      const key = { partition: 'p', sort: 'count' };
      for (let i = 0; i < 100; ) {
        const entry = await store.get(key);
        const put = store.put(key, { n: (entry?.value.n ?? 0) + 1 }, new Date('2030-01-01'), entry ? { version: entry.version } : 'absent');
        i += await put.then(() => 1, (error) => { if (error.name !== 'LedgerConflict') throw error; return 0; });
      }
      await store.close();`;
    const run = () =>
      new Promise((done, fail) => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
          stdio: ['ignore', 'ignore', 'inherit'],
        });
        child.once('exit', (code) => (code === 0 ? done(code) : fail(new Error(`exit ${code}`))));
      });
    await Promise.all([run(), run()]);
    const store = await SqliteLedger.open(file);
    expect((await store.get({ partition: 'p', sort: 'count' }))?.value).toEqual({ n: 200 });
    await store.close();
  });
});
