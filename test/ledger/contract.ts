import { beforeEach, describe, expect, it } from 'vitest';
import { LedgerConflict, type LedgerStore } from '../../shared/core/ports.ts';

export interface Driver {
  /** A fresh view of one and the same empty store; its clock is the given one. */
  open(clock: { now(): Date }): Promise<LedgerStore>;
  /** Why conditions are not atomic on the server that stands in for the cloud here; undefined = they are. */
  readonly racy?: string;
}

const FUTURE = new Date('2030-01-01T00:00:00Z');
const NOW = new Date('2026-12-01T12:00:00Z');

async function sorts(store: LedgerStore, ...query: Parameters<LedgerStore['query']>): Promise<string[]> {
  return (await Array.fromAsync(store.query(...query))).map(({ sort }) => sort);
}

/** What every ledger store must do. Partitions are new in every test, so that a store may be shared between them. */
export function ledgerContract(name: string, driver: Driver): void {
  describe(`ledger: ${name}`, () => {
    let now = NOW;
    let store: LedgerStore;
    let partition: string;
    const at = (sort: string) => ({ partition, sort });

    beforeEach(async () => {
      now = NOW;
      partition = `p|${crypto.randomUUID()}`;
      store = await driver.open({ now: () => now });
    });

    it('gives back what was put, and nothing for what was not', async () => {
      const value = { text: 'ä€🙂\u0000"', n: 1.5, none: null, list: [1, 'a', { b: true }] };
      const version = await store.put(at('a'), value, FUTURE, 'any');
      expect(await store.get(at('a'))).toEqual({ partition, sort: 'a', value, version, expiresAt: FUTURE });
      expect(await store.get(at('b'))).toBeUndefined();
    });

    it('holds values of 30 KB', async () => {
      const value = { text: 'x'.repeat(30_000) };
      await store.put(at('big'), value, FUTURE, 'any');
      expect((await store.get(at('big')))?.value).toEqual(value);
    });

    it('takes keys as clouds make them', async () => {
      const keys = [
        'azure:/subscriptions/S/resourceGroups/rg/providers/Microsoft.Network/networkInterfaces/n',
        'a#b?c\\d%e',
        'ümlaut/日本',
        ' space ',
        'tab\tend',
        'claim|aws:us-east-1',
      ];
      for (const key of keys) await store.put(at(key), { key }, FUTURE, 'any');
      for (const key of keys) expect((await store.get(at(key)))?.value).toEqual({ key });
      expect((await sorts(store, partition)).sort()).toEqual([...keys].sort());
      expect(await sorts(store, partition, { prefix: 'azure:/subscriptions/' })).toEqual([keys[0]]);
    });

    it('puts on a condition, and writes nothing when it does not hold', async () => {
      const first = await store.put(at('a'), { n: 1 }, FUTURE, 'absent');
      await expect(store.put(at('a'), { n: 2 }, FUTURE, 'absent')).rejects.toBeInstanceOf(LedgerConflict);
      const second = await store.put(at('a'), { n: 3 }, FUTURE, { version: first });
      expect(second).not.toBe(first);
      await expect(store.put(at('a'), { n: 4 }, FUTURE, { version: first })).rejects.toBeInstanceOf(LedgerConflict);
      await expect(store.put(at('never'), { n: 4 }, FUTURE, { version: first })).rejects.toBeInstanceOf(LedgerConflict);
      expect((await store.get(at('a')))?.value).toEqual({ n: 3 });
      expect(await store.get(at('never'))).toBeUndefined();
    });

    it('deletes, on a condition too, and what is missing is no error', async () => {
      const version = await store.put(at('a'), {}, FUTURE, 'any');
      await store.put(at('a'), {}, FUTURE, 'any');
      await expect(store.delete(at('a'), { version })).rejects.toBeInstanceOf(LedgerConflict);
      const latest = (await store.get(at('a')))?.version ?? '';
      await store.delete(at('a'), { version: latest });
      expect(await store.get(at('a'))).toBeUndefined();
      await store.delete(at('a'));
      await expect(store.delete(at('a'), { version: latest })).rejects.toBeInstanceOf(LedgerConflict);
    });

    it('never returns what has expired, and treats it as absent', async () => {
      const soon = new Date(NOW.getTime() + 60_000);
      const version = await store.put(at('a'), { n: 1 }, soon, 'any');
      now = new Date(NOW.getTime() + 61_000);
      expect(await store.get(at('a'))).toBeUndefined();
      expect(await store.getMany([at('a')])).toEqual([]);
      expect(await sorts(store, partition)).toEqual([]);
      await expect(store.put(at('a'), { n: 2 }, FUTURE, { version })).rejects.toBeInstanceOf(LedgerConflict);
      await store.put(at('a'), { n: 3 }, FUTURE, 'absent');
      expect((await store.get(at('a')))?.value).toEqual({ n: 3 });
    });

    it('reads many at once, in whatever number, twice named or missing', async () => {
      const keys = Array.from({ length: 230 }, (_, index) => at(`k${index}`));
      for (const key of keys) await store.put(key, { of: key.sort }, FUTURE, 'any');
      const asked = [...keys, at('missing'), at('k0')];
      const found = new Map((await store.getMany(asked)).map(({ sort, value }) => [sort, value]));
      expect(found.size).toBe(230);
      expect(found.get('k229')).toEqual({ of: 'k229' });
      expect(await store.getMany([])).toEqual([]);
    });

    it('queries by prefix, in order, backwards, limited, and only its partition', async () => {
      for (const sort of ['b2', 'a1', 'b1', 'c', 'b10']) await store.put(at(sort), {}, FUTURE, 'any');
      await store.put({ partition: `${partition}x`, sort: 'b1' }, {}, FUTURE, 'any');
      expect(await sorts(store, partition)).toEqual(['a1', 'b1', 'b10', 'b2', 'c']);
      expect(await sorts(store, partition, { prefix: 'b' })).toEqual(['b1', 'b10', 'b2']);
      expect(await sorts(store, partition, { prefix: 'b', reverse: true })).toEqual(['b2', 'b10', 'b1']);
      expect(await sorts(store, partition, { limit: 2 })).toEqual(['a1', 'b1']);
      expect(await sorts(store, partition, { reverse: true, limit: 1 })).toEqual(['c']);
      expect(await sorts(store, partition, { limit: 0 })).toEqual([]);
      expect(await sorts(store, partition, { prefix: '%' })).toEqual([]);
    });

    it('skips what has expired without letting it count towards a limit', async () => {
      await store.put(at('a'), {}, new Date(NOW.getTime() + 1000), 'any');
      await store.put(at('b'), {}, FUTURE, 'any');
      await store.put(at('c'), {}, FUTURE, 'any');
      now = new Date(NOW.getTime() + 5000);
      expect(await sorts(store, partition, { limit: 2 })).toEqual(['b', 'c']);
    });

    if (driver.racy) console.warn(`skipped: fifty increments at once on ${name}: ${driver.racy}`);
    it.skipIf(driver.racy !== undefined)('loses none of fifty increments made at once', async () => {
      const increment = async () => {
        for (;;) {
          const entry = await store.get(at('count'));
          const count = Number(entry?.value.n ?? 0) + 1;
          try {
            await store.put(at('count'), { n: count }, FUTURE, entry ? { version: entry.version } : 'absent');
            return;
          } catch (error) {
            if (!(error instanceof LedgerConflict)) throw error;
          }
        }
      };
      await Promise.all(Array.from({ length: 50 }, increment));
      expect((await store.get(at('count')))?.value).toEqual({ n: 50 });
    });
  });
}
