import { formatDuration } from './duration.ts';
import type { OwnerRef } from './model.ts';
import type { OwnerBook } from './owner-book.ts';
import type { CloudScope } from './ports.ts';
import type { OwnerRecord } from './records.ts';
import { type Run, tell } from './run.ts';

/** The owners of one scope that the ledger knows alive, for counting how many of them are suddenly gone. */
export class KnownOwners {
  readonly #byId = new Map<string, OwnerRecord>();
  readonly #byName = new Map<string, OwnerRecord>();
  readonly #gone = new Map<string, OwnerRecord>();

  static async load(run: Run, scope: CloudScope): Promise<KnownOwners> {
    const known = new KnownOwners();
    for await (const record of run.ledger.owners(scope.id)) {
      if (record.state !== 'alive') continue;
      known.#byId.set(record.id.toLowerCase(), record);
      known.#byName.set(`${record.place}|${record.name.toLowerCase()}`, record);
    }
    return known;
  }

  /** Notes which of these owners were alive at the last look and are gone now. */
  count(refs: readonly OwnerRef[], book: OwnerBook): void {
    for (const ref of refs) {
      if (!book.gone(ref)) continue;
      const value = ref.value.toLowerCase();
      const record = ref.by === 'id' ? this.#byId.get(value) : this.#byName.get(`${ref.place}|${value}`);
      if (record) this.#gone.set(record.vmKey, record);
    }
  }

  get known(): number {
    return this.#byId.size;
  }

  get gone(): readonly OwnerRecord[] {
    return [...this.#gone.values()];
  }
}

/**
 * Stops a run that looks wrong: half or more of the owners known alive (and at least 20 of them) gone at once is more
 * often a wrong account, a failing API or a mistake than a truth. It holds until enough of them are back, until its hold
 * time has passed with every answer still the same, or until a person releases it.
 * @param whole  this run looked at the whole scope; a narrower one sees too little to let a tripped breaker go
 * @returns true when nothing may be deleted
 */
export async function breakerHolds(run: Run, scope: CloudScope, owners: KnownOwners, whole: boolean): Promise<boolean> {
  const { share, min, hold } = run.policy.breaker;
  const gone = owners.gone.length;
  const looksWrong = gone >= min && gone >= share * owners.known;
  const before = await run.ledger.breaker(scope.id);
  const now = run.clock.now();
  const trippedAt = before?.trippedAt ?? now;
  const held = now.getTime() - trippedAt.getTime() >= hold;
  if (run.releaseBreaker || (looksWrong ? held : whole || !before)) {
    if (before)
      run.log.warn({ gone, known: owners.known, trippedAt, byPerson: run.releaseBreaker }, 'breaker released');
    if (before && run.writes) await run.ledger.releaseBreaker(scope.id);
    return false;
  }
  run.report.stop('breaker');
  run.report.breakerTripped = true;
  run.log.error(
    { gone, known: owners.known, hold: formatDuration(hold) },
    'breaker: many owners are gone at once, nothing is deleted',
  );
  if (run.writes && !before) {
    await run.ledger.tripBreaker(scope.id, { trippedAt, gone, known: owners.known }, hold);
    await tell(run, {
      type: 'breaker-tripped',
      detail: { runId: run.runId, scopeId: scope.id, gone, known: owners.known },
    });
  }
  return true;
}

/** Whether a breaker that another run tripped still holds; for those who delete what that run or an event found. */
export async function breakerStands(run: Run, scope: CloudScope): Promise<boolean> {
  const state = await run.ledger.breaker(scope.id);
  if (!state || run.clock.now().getTime() - state.trippedAt.getTime() >= run.policy.breaker.hold) return false;
  run.report.stop('breaker');
  return true;
}

/** Owners that are gone and did not trip the breaker no longer count as known alive. */
export async function bury(run: Run, scope: CloudScope, owners: KnownOwners): Promise<void> {
  if (!run.writes) return;
  for (const record of owners.gone) await run.ledger.buried(scope.id, record, run.clock.now());
}
