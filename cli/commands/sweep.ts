import { createInterface } from 'node:readline/promises';
import ora from 'ora';
import { type Call, type Engine, type SweepResult, sweep } from '../../shared/core/engine.ts';
import { InputError } from '../../shared/core/errors.ts';
import type { Mode } from '../../shared/core/model.ts';
import type { ScopeRequest } from '../../shared/core/ports.ts';
import { exitCodeOf, type Report, type ReportItem } from '../../shared/core/report.ts';
import { durationOf, type Flags, modeOf, policyOf, sweepScopeOf } from '../flags.ts';
import { interruptible } from '../interrupt.ts';
import { JsonReport } from '../output/json-stream.ts';
import { printReport } from '../output/report-table.ts';
import { engineOf, homeRegion, isForgetful } from '../wire.ts';

/** A table is read by a person: so many items are kept for it. */
const TABLE_ITEMS = 5000;

/** `gleaner plan` and `gleaner sweep`. @returns the exit code */
export async function sweepCommand(verb: 'plan' | 'sweep', given: Flags): Promise<number> {
  const flags = await located(given);
  const policy = policyOf(flags);
  const mode = modeOf(flags, policy);
  const request = sweepScopeOf(flags);
  const waitMs = durationOf('wait', flags.wait) ?? 0;
  const deletes = verb === 'sweep' && mode === 'enforce';
  if (deletes && !flags.yes && !process.stdin.isTTY) {
    throw new InputError('--yes', 'is needed to delete where nobody can be asked (standard input is no terminal)');
  }
  if (deletes && policy.snapshot === 'before-delete' && isForgetful(flags)) {
    throw new InputError(
      '--ledger',
      'memory forgets which snapshot belongs to which deletion: snapshot: before-delete needs another',
    );
  }
  const engine = await engineOf(flags, policy, verb === 'sweep' ? 'write' : 'look');
  const interrupt = interruptible();
  try {
    if (deletes && !flags.yes && !(await confirmed(engine, request, interrupt.signal))) return 0;
    const report = await runAndPrint(engine, verb, request, { mode, waitMs, flags, signal: interrupt.signal });
    return interrupt.signal.aborted ? 130 : exitCodeOf(report);
  } finally {
    interrupt.stop();
    await engine.store.close();
  }
}

/** The report says where it looked, also where no flag does. */
async function located(flags: Flags): Promise<Flags> {
  return flags.cloud === 'aws' && flags.region === undefined ? { ...flags, region: await homeRegion(flags) } : flags;
}

interface Run {
  readonly mode: Mode;
  readonly waitMs: number;
  readonly flags: Flags;
  readonly signal: AbortSignal;
}

async function runAndPrint(engine: Engine, verb: 'plan' | 'sweep', request: ScopeRequest, run: Run): Promise<Report> {
  const { mode, flags, signal } = run;
  const json = flags.json ? new JsonReport() : undefined;
  const kept: Record<string, number> = {};
  const spinner = ora({ text: `${verb} …`, stream: process.stderr, isSilent: !hasWidth(process.stderr) }).start();
  let seen = 0;
  const onItem = (item: ReportItem) => {
    seen += 1;
    if (item.verdict === 'keep') kept[item.reason] = (kept[item.reason] ?? 0) + 1;
    spinner.text = `${verb}: ${seen} looked at`;
    json?.item(item);
  };
  const call: Call = {
    mode,
    signal,
    releaseBreaker: flags.releaseBreaker ?? false,
    maxItems: json ? 0 : TABLE_ITEMS,
    onItem,
  };
  try {
    const report = await sweepAndWait(engine, verb, request, call, run.waitMs, (text) => {
      spinner.text = text;
    });
    spinner.stop();
    if (json) json.end(report);
    else printReport(report, kept, flags.all ?? false);
    return report;
  } finally {
    spinner.stop();
  }
}

/**
 * Sweeps, and for as long as `waitMs` allows waits for what the cloud wants later and sweeps again. The items of every
 * round are in the report; its counts say how each ended at last.
 */
async function sweepAndWait(
  engine: Engine,
  verb: 'plan' | 'sweep',
  request: ScopeRequest,
  call: Call,
  waitMs: number,
  say: (text: string) => void,
): Promise<Report> {
  const deadline = waitMs === 0 ? 0 : engine.clock.now().getTime() + waitMs + WAIT_SLACK_MS;
  let result = await sweep(engine, verb, request, call);
  for (;;) {
    const nextMs = soonest(result, deadline - engine.clock.now().getTime());
    if (nextMs === undefined || call.signal.aborted) return result.report;
    say(`${result.later.length} to try again in ${Math.ceil(nextMs / 1000)} s`);
    await engine.clock.sleep(nextMs, call.signal).catch(() => {});
    if (call.signal.aborted) return result.report;
    const { deleted, failed } = result.report.counts;
    const again = await sweep(engine, verb, request, { ...call, runId: result.report.runId });
    const counts = {
      ...again.report.counts,
      deleted: again.report.counts.deleted + deleted,
      failed: again.report.counts.failed + failed,
    };
    result = { ...again, report: { ...again.report, counts, startedAt: result.report.startedAt } };
  }
}

/** `--wait 1m` is meant to reach what comes back in a minute, though the look itself has taken a moment of it. */
const WAIT_SLACK_MS = 5000;

/** When the first of what comes later may be tried, if that is within the time left. */
function soonest({ later }: SweepResult, leftMs: number): number | undefined {
  const delays = later.map(({ afterMs }) => afterMs).filter((afterMs) => afterMs <= leftMs);
  return delays.length > 0 ? Math.min(...delays) : undefined;
}

/** Plans first, so that the question says what it is about. */
async function confirmed(engine: Engine, request: ScopeRequest, signal: AbortSignal): Promise<boolean> {
  const { report } = await sweep(engine, 'plan', request, { mode: 'enforce', signal, maxItems: TABLE_ITEMS });
  const { reap, deferred } = report.counts;
  const due = report.items.filter(({ verdict }) => verdict === 'reap');
  if (reap === 0) return true;
  for (const { kind, id, name } of due.slice(0, 20))
    process.stderr.write(`  ${kind} ${id} ${name === id ? '' : name}\n`);
  if (due.length > 20) process.stderr.write(`  … and ${due.length - 20} more\n`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Delete ${reap - deferred} network interfaces and disks? Type yes: `, {
      signal,
    });
    if (answer.trim().toLowerCase() === 'yes') return true;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    terminal.close();
  }
  process.stderr.write('nothing deleted\n');
  return false;
}

/** A terminal that says it has no columns (some of CI's, and script(1) without one) makes the spinner clear lines for ever. */
function hasWidth(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY === true && stream.columns > 0;
}
