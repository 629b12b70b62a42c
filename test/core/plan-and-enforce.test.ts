import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sweep } from '../../shared/core/engine.ts';
import type { Report } from '../../shared/core/report.ts';
import { MemoryLedger } from '../../shared/local/ledger-memory.ts';
import { FakeCloud } from '../support/fake-cloud.ts';
import { enforce, MINUTE, START, testEngine } from '../support/run.ts';

const anyResource = fc.record({
  kind: fc.constantFrom('disk' as const, 'nic' as const),
  vm: fc.constantFrom('alive', 'dead', 'dead', 'dead', '?', undefined),
  keep: fc.constantFrom(undefined, undefined, undefined, '', 'false'),
  held: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  bornMinutes: fc.constantFrom(5, 600, undefined),
  detachedMinutes: fc.constantFrom(5, 60, undefined),
  secondLook: fc.boolean(),
});
const anyEstate = fc.record({
  resources: fc.array(anyResource, { maxLength: 12 }),
  grace: fc.constantFrom('0', '30m'),
  perRun: fc.constantFrom(2, 200),
  /** Minutes between a first sweep that marks and the run in question; undefined = there was none. */
  seenMinutes: fc.constantFrom(undefined, 1, 31),
});
type Estate = typeof anyEstate extends fc.Arbitrary<infer T> ? T : never;

const ago = (minutes: number | undefined) =>
  minutes === undefined ? undefined : new Date(START.getTime() - minutes * MINUTE);

function furnish({ resources }: Estate): FakeCloud {
  const cloud = new FakeCloud();
  cloud.vm('alive');
  for (const [index, one] of resources.entries()) {
    const tags = {
      ...(one.vm !== undefined && { [one.vm === '?' ? 'gleaner-owner' : 'vm']: one.vm }),
      ...(one.keep !== undefined && { 'gleaner-keep': one.keep }),
      cluster: 'c',
    };
    const holds = one.held ? [{ code: 'service-managed', detail: 'x' }] : [];
    const times = { createdAt: ago(one.bornMinutes), detachedAt: ago(one.detachedMinutes) };
    cloud[one.kind](`r${index}`, { tags, holds, needsSecondLook: one.secondLook, ...times });
  }
  return cloud;
}

async function decisions(
  estate: Estate,
  verb: 'plan' | 'sweep',
): Promise<{ report: Report; deleted: readonly string[] }> {
  const cloud = furnish(estate);
  const store = new MemoryLedger();
  const engine = testEngine(cloud, store, { grace: estate.grace, budget: { perRun: estate.perRun } });
  if (estate.seenMinutes !== undefined) {
    await sweep(engine, 'sweep', {}, { ...enforce, mode: 'observe' });
    engine.clock.advance(estate.seenMinutes * MINUTE);
  }
  return { report: (await sweep(engine, verb, {}, enforce)).report, deleted: cloud.deleted };
}

const decided = ({ items }: Report) => items.map(({ id, verdict, reason }) => `${id} ${verdict} ${reason}`).sort();

describe('plan and enforce', () => {
  it('decide alike, whatever the estate; what enforce deletes is what plan said would go', async () => {
    let deletions = 0;
    await fc.assert(
      fc.asyncProperty(anyEstate, async (estate) => {
        const plan = await decisions(estate, 'plan');
        const swept = await decisions(estate, 'sweep');
        expect(decided(swept.report)).toEqual(decided(plan.report));
        expect(swept.report.stoppedBy).toBe(plan.report.stoppedBy);
        const would = plan.report.items.filter(({ outcome }) => outcome === 'would-delete').map(({ id }) => id);
        expect([...swept.deleted].sort()).toEqual(would.sort());
        expect(plan.deleted).toEqual([]);
        deletions += swept.deleted.length;
      }),
      { numRuns: 300 },
    );
    expect(deletions).toBeGreaterThan(50);
  });
});
