import { formatDuration } from '../../shared/core/duration.ts';
import type { Report, ReportItem } from '../../shared/core/report.ts';
import { OUTCOME_STYLE, paint } from './style.ts';
import { shortId, table } from './table.ts';

/** Rows of a table that a person reads; the rest is counted. */
const MAX_ROWS = 500;

/** The report as a person reads it: what goes, what waits, what is kept and why, and what comes next. */
export function printReport(report: Report, kept: Readonly<Record<string, number>>, all: boolean): void {
  const shown = report.items.filter((item) => all || item.verdict !== 'keep' || item.outcome !== 'none');
  if (shown.length > 0) print(itemTable(shown.slice(0, MAX_ROWS), report));
  const beyond = shown.length - MAX_ROWS + report.itemsOmitted;
  if (beyond > 0) print(`… and ${beyond} more; --json has them all`);
  print(summary(report));
  if (Object.keys(kept).length > 0) print(`kept: ${countsOf(kept)}`);
  for (const { scope, reason } of report.skipped) print(`skipped: ${scope}, ${reason}`);
  for (const { operation, code, message } of report.errors)
    print(paint('red', `error: ${operation}: ${code}: ${message}`));
  print(nextStep(report));
}

function itemTable(items: readonly ReportItem[], report: Report): string {
  const rows = items.map((item) => cells(item, report));
  return table(['', 'kind', 'id', 'name', 'reason', 'owner', 'due'], rows);
}

function cells(item: ReportItem, report: Report): string[] {
  const label = item.outcome === 'none' ? item.verdict : item.outcome;
  const owner = item.owner ? `${item.owner.name ?? item.owner.id} (${item.owner.state})` : '';
  return [
    paint(OUTCOME_STYLE[item.outcome] ?? 'dim', label),
    item.kind,
    shortId(item.id),
    item.name,
    item.reason,
    owner,
    dueIn(item, report),
  ];
}

function dueIn({ dueAt, verdict }: ReportItem, { startedAt }: Report): string {
  if (dueAt === undefined || verdict !== 'wait') return '';
  return `in ${formatDuration(Math.max(0, Date.parse(dueAt) - Date.parse(startedAt)))}`;
}

function summary({ verb, mode, counts, calls, startedAt, finishedAt }: Report): string {
  const took = formatDuration(Date.parse(finishedAt) - Date.parse(startedAt));
  const requests = Object.values(calls).reduce((sum, count) => sum + count, 0);
  const { listed, keep, wait, reap, deleted, failed, deferred } = counts;
  const acted =
    verb === 'plan' || mode === 'observe'
      ? `${reap} would go`
      : `${deleted} deleted, ${failed} failed, ${deferred} deferred`;
  return (
    paint('bold', `${verb}: ${listed} looked at, ${keep} kept, ${wait} waiting, ${acted}`) +
    ` (${requests} calls, ${took})`
  );
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(', ');
}

function nextStep({ verb, mode, counts, stoppedBy, complete }: Report): string {
  if (stoppedBy === 'breaker')
    return 'stopped by the breaker: many owners are gone at once. If that is true, --release-breaker goes on.';
  if (stoppedBy === 'budget') return 'stopped by the budget: the next run goes on, or --budget raises it.';
  if (!complete) return 'incomplete: what could not be listed was not judged, and nothing of it was deleted.';
  if (verb === 'plan' && counts.reap > 0)
    return 'next: gleaner sweep --mode enforce with the same flags deletes these.';
  if (mode === 'observe' && counts.reap > 0) return 'next: --mode enforce deletes these.';
  if (counts.deferred > 0) return 'next: sweep again later, or with --wait, for what is deferred.';
  if (verb === 'plan' && counts.wait > 0)
    return 'next: gleaner sweep remembers what it sees (and deletes nothing without --mode enforce): grace counts from there.';
  if (counts.wait > 0) return 'next: sweep again when the first of these is due.';
  return 'nothing left to do.';
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
