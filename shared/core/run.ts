import { CloudError } from './errors.ts';
import type { Ledger } from './ledger.ts';
import type { Mode } from './model.ts';
import type { Policy } from './policy.ts';
import type { Clock, Log, Notice, Notifier, WorkQueue } from './ports.ts';
import type { ReportBuilder } from './report.ts';

/** Time kept back for the ledger, the report and the answer when a run must end. */
const RESERVE_MS = 20_000;

/** Everything that one run shares, whatever it does and in whichever cloud. */
export interface Run {
  readonly runId: string;
  /** `plan` writes nothing anywhere: no mark, no claim, no notice. */
  readonly writes: boolean;
  readonly mode: Mode;
  readonly policy: Policy;
  /** Only resources of these clusters; empty = all. */
  readonly clusters: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly ledger: Ledger;
  readonly notifier: Notifier;
  readonly report: ReportBuilder;
  readonly signal: AbortSignal;
  /** Time until the function is killed; Infinity where nobody kills it. */
  readonly remainingMs: () => number;
  /** A person has looked and says that the owners are truly gone. */
  readonly releaseBreaker: boolean;
  /** Deletions left in this run. */
  readonly budget: { left: number };
  /** Set where this process decides and another one deletes. */
  readonly queue?: WorkQueue;
}

/** Whether there is still time for `neededMs` of work. Being killed has no `finally`, so runs stop early instead. */
export function hasTime(run: Run, neededMs = 0): boolean {
  return !run.signal.aborted && run.remainingMs() > RESERVE_MS + neededMs;
}

/** Telling the outside must never stop or fail what is told. */
export async function tell(run: Run, notice: Notice): Promise<void> {
  if (!run.writes) return;
  try {
    await run.notifier.notify(notice);
  } catch (error) {
    run.log.warn({ notice: notice.type, error: messageOf(error) }, 'notice not delivered');
  }
}

export function messageOf(error: unknown): string {
  if (error instanceof CloudError) return `${error.nativeCode}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
