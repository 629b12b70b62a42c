import { messageOf, type Run } from './run.ts';

/** Deletions that may be made, and of which hour's budget. */
export interface Grant {
  readonly count: number;
  readonly at: Date;
}

/** Takes up to `wanted` deletions from the run's budget and the hour's. */
export async function takeBudget(run: Run, wanted: number): Promise<Grant> {
  const at = run.clock.now();
  const mine = Math.min(wanted, run.budget.left);
  if (mine <= 0) return { count: 0, at };
  // Taken before it is asked for: batches run side by side, and none may count on what another is about to take.
  run.budget.left -= mine;
  const count = await run.ledger.spend(at, mine, run.policy.budget.perHour);
  run.budget.left += mine - count;
  return { count, at };
}

/** Gives back what was not used, to the hour that it came from. That it cannot is no reason to fail what was deleted. */
export async function giveBackBudget(run: Run, { at }: Grant, unused: number): Promise<void> {
  run.budget.left += unused;
  try {
    await run.ledger.spend(at, -unused, run.policy.budget.perHour);
  } catch (error) {
    run.log.warn({ error: messageOf(error) }, 'unused budget not given back');
  }
}

/** Milliseconds until the hour's budget is a new one. */
export const untilNextHour = (run: Run) => 3_600_000 - (run.clock.now().getTime() % 3_600_000);
