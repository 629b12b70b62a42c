import { describe, expect, it } from 'vitest';
import { sweep } from '../../shared/core/engine.ts';
import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { LedgerStore } from '../../shared/core/ports.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { AT_ONCE, delegate, enforce, MINUTE, testEngine } from '../support/run.ts';

describe('a process that is ended at any step', () => {
  // The store and the cloud survive; everything after the fatal step is lost with the process.
  const STEPS = ['get disk', 'put intent', 'delete disk', 'put tombstone', 'delete intent', 'delete mark'] as const;

  it.each(STEPS.flatMap((step) => [`before ${step}`, `after ${step}`]))(
    '%s: the next run finishes, and the record is one',
    async (where) => {
      const cloud = new FakeCloud();
      cloud.disk('d1');
      const store = new MemoryLedger();
      let dead = false;
      const fatal = async <T>(step: string, act: () => Promise<T>): Promise<T> => {
        if (dead || where === `before ${step}`) return die();
        const result = await act();
        return where === `after ${step}` ? die() : result;
      };
      const die = () => {
        dead = true;
        return new Promise<never>(() => {});
      };
      const nameOf = (partition: string) => partition.split('|')[0];
      const dying = delegate(store, {
        get: (...args: Parameters<LedgerStore['get']>) => fatal('get ledger', () => store.get(...args)),
        put: (...args: Parameters<LedgerStore['put']>) =>
          fatal(`put ${nameOf(args[0].partition)}`, () => store.put(...args)),
        delete: (...args: Parameters<LedgerStore['delete']>) =>
          fatal(`delete ${nameOf(args[0].partition)}`, () => store.delete(...args)),
      });
      // The mark of an earlier sighting, so that there is one to remove.
      await sweep(testEngine(cloud, store), 'sweep', {}, enforce);
      const first = testEngine(cloud, dying, AT_ONCE);
      const realScope = cloud.scope.bind(cloud);
      cloud.scope = () => {
        const scope = realScope();
        const types = scope.types.map((type) => ({
          ...type,
          get: (...args: Parameters<typeof type.get>) => fatal(`get ${type.kind}`, () => type.get(...args)),
          delete: (...args: Parameters<typeof type.delete>) => fatal(`delete ${type.kind}`, () => type.delete(...args)),
        }));
        return { ...scope, types };
      };
      first.clock.advance(MINUTE);
      await Promise.race([sweep(first, 'sweep', {}, enforce), new Promise((resolve) => setTimeout(resolve, 100))]);
      expect(dead).toBe(true);

      cloud.scope = realScope;
      const next = testEngine(cloud, store, AT_ONCE);
      next.clock.advance(2 * MINUTE);
      await sweep(next, 'sweep', {}, enforce);
      expect(cloud.deleted).toEqual(['d1']);
      const records = await history(new Ledger(store), 10);
      expect(records).toMatchObject([{ id: 'd1', outcome: 'deleted' }]);
      const open = [];
      for await (const intent of new Ledger(store).openIntents('fake:here')) open.push(intent);
      expect(open).toEqual([]);
    },
  );
});
