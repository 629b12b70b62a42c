import * as z from 'zod';
import type { CloudError } from './errors.ts';
import type { RunMetrics } from './metrics.ts';
import type { Mode, Outcome, Resource, Verdict } from './model.ts';
import type { ScopeRequest } from './ports.ts';

export type Verb = 'plan' | 'sweep' | 'vm-event' | 'reap' | 'explain';

const time = z.iso.datetime();
const count = z.int().min(0);

export const reportItemSchema = z.object({
  id: z.string().describe('Native id.'),
  cloud: z.string(),
  kind: z.enum(['disk', 'nic']),
  name: z.string(),
  verdict: z.enum(['keep', 'wait', 'reap']),
  reason: z.string().describe('Stable code; docs/reasons.md explains each.'),
  outcome: z.enum(['none', 'would-delete', 'deleted', 'failed', 'deferred']),
  owner: z
    .object({
      id: z.string().nullable(),
      name: z.string().nullable(),
      evidence: z.string().describe('owner-tag, claim, or the name of a convention.'),
      state: z.enum(['alive', 'gone', 'unknown']),
    })
    .nullable(),
  evidence: z.array(z.string()),
  dueAt: time.optional().describe('When it would go if nothing changes.'),
});

export const reportSchema = z
  .object({
    runId: z.string(),
    verb: z.enum(['plan', 'sweep', 'vm-event', 'reap', 'explain']),
    mode: z.enum(['observe', 'enforce']),
    scope: z.record(z.string(), z.unknown()).describe('What was asked for.'),
    startedAt: time,
    finishedAt: time,
    complete: z
      .boolean()
      .describe('False when a listing failed or the run was stopped: what is missing was not judged.'),
    stoppedBy: z.enum(['budget', 'breaker', 'time']).nullable(),
    counts: z.object({
      listed: count,
      keep: count,
      wait: count,
      reap: count,
      deleted: count,
      failed: count,
      deferred: count,
    }),
    calls: z.record(z.string(), count).describe('HTTP requests by operation, retries included.'),
    items: z.array(reportItemSchema),
    itemsOmitted: count.describe('Items left out because the answer would have been too long; all are in the log.'),
    skipped: z.array(z.object({ scope: z.string(), reason: z.string() })).describe('Regions that are not enabled.'),
    errors: z.array(z.object({ code: z.string(), operation: z.string(), message: z.string() })),
  })
  .describe('Gleaner report');

export type Report = z.infer<typeof reportSchema>;
export type ReportItem = z.infer<typeof reportItemSchema>;

export function reportJsonSchema(): object {
  return z.toJSONSchema(reportSchema);
}

export interface ReportStart {
  readonly runId: string;
  readonly verb: Verb;
  readonly mode: Mode;
  readonly scope: ScopeRequest;
  readonly startedAt: Date;
  /** Items beyond so many are counted, handed to `onItem`, and left out of the report itself. */
  readonly maxItems: number;
  readonly onItem?: (item: ReportItem) => void;
}

/** Collects a run. Counts and metrics stay flat in memory however many items pass through. */
export class ReportBuilder {
  readonly start: ReportStart;
  readonly counts = { listed: 0, keep: 0, wait: 0, reap: 0, deleted: 0, failed: 0, deferred: 0 };
  readonly skipped: { scope: string; reason: string }[] = [];
  complete = true;
  stoppedBy: Report['stoppedBy'] = null;
  breakerTripped = false;
  givenUp = 0;
  readonly #items: ReportItem[] = [];
  readonly #errors: Report['errors'] = [];
  readonly #keptByReason: Record<string, number> = {};
  readonly #reclaimed = { diskGiB: 0, interfaces: 0 };
  #monthlyCostUsd = 0;
  #oldestOrphan: Date | undefined;

  constructor(start: ReportStart) {
    this.start = start;
  }

  item(resource: Resource, verdict: Verdict, outcome: Outcome, more: readonly string[] = []): void {
    this.#measure(resource, verdict, outcome);
    this.add(toReportItem(resource, verdict, outcome, more));
  }

  /** An item of which only the report's own form is known: the record of a run that was ended. */
  add(item: ReportItem): void {
    const { verdict, outcome } = item;
    this.counts.listed += 1;
    this.counts[verdict] += 1;
    if (outcome === 'deleted' || outcome === 'failed' || outcome === 'deferred') this.counts[outcome] += 1;
    this.start.onItem?.(item);
    if (this.#items.length < this.start.maxItems) this.#items.push(item);
  }

  error(error: CloudError): void {
    if (this.#errors.length < 100) {
      this.#errors.push({ code: error.nativeCode, operation: error.operation, message: error.message });
    }
  }

  incomplete(error: CloudError): void {
    this.complete = false;
    this.error(error);
  }

  /** The first thing that stops a run is what it is reported as stopped by. */
  stop(by: NonNullable<Report['stoppedBy']>): void {
    this.stoppedBy ??= by;
  }

  finish(calls: Readonly<Record<string, number>>, finishedAt: Date): Report {
    const { runId, verb, mode, scope, startedAt } = this.start;
    return {
      runId,
      verb,
      mode,
      scope: { ...scope },
      startedAt: startedAt.toISOString(),
      finishedAt: finishedAt.toISOString(),
      complete: this.complete,
      stoppedBy: this.stoppedBy,
      counts: { ...this.counts },
      calls: { ...calls },
      items: this.#items,
      itemsOmitted: this.counts.listed - this.#items.length,
      skipped: this.skipped,
      errors: this.#errors,
    };
  }

  metrics(now: Date): RunMetrics {
    const oldest = this.#oldestOrphan && {
      oldestOrphanAgeS: Math.round((now.getTime() - this.#oldestOrphan.getTime()) / 1000),
    };
    return {
      deleted: this.counts.deleted,
      failed: this.counts.failed,
      deferred: this.counts.deferred,
      keptByReason: { ...this.#keptByReason },
      diskGiBReclaimed: this.#reclaimed.diskGiB,
      interfacesReclaimed: this.#reclaimed.interfaces,
      monthlyCostUsd: this.#monthlyCostUsd,
      breakerTripped: this.breakerTripped,
      givenUp: this.givenUp,
      ...oldest,
    };
  }

  #measure(resource: Resource, verdict: Verdict, outcome: Outcome): void {
    if (verdict.verdict === 'keep') {
      this.#keptByReason[verdict.reason] = (this.#keptByReason[verdict.reason] ?? 0) + 1;
      return;
    }
    this.#monthlyCostUsd += resource.monthlyCostUsd ?? 0;
    const since = verdict.orphanSince;
    if (outcome !== 'deleted' && since && (!this.#oldestOrphan || since < this.#oldestOrphan))
      this.#oldestOrphan = since;
    if (outcome !== 'deleted') return;
    if (resource.kind === 'disk') this.#reclaimed.diskGiB += resource.sizeGiB ?? 0;
    else this.#reclaimed.interfaces += 1;
  }
}

export function toReportItem(
  resource: Resource,
  verdict: Verdict,
  outcome: Outcome,
  more: readonly string[] = [],
): ReportItem {
  const { attribution, answer } = verdict.owner ?? {};
  const owner = attribution &&
    answer && {
      id: answer.id ?? (attribution.ref.by === 'id' ? attribution.ref.value : null),
      name: answer.name ?? (attribution.ref.by === 'name' ? attribution.ref.value : null),
      evidence: attribution.evidence,
      state: answer.state,
    };
  return {
    id: resource.id,
    cloud: resource.cloud,
    kind: resource.kind,
    name: resource.name,
    verdict: verdict.verdict,
    reason: verdict.reason,
    outcome,
    owner: owner ?? null,
    evidence: [...verdict.evidence, ...more],
    ...(verdict.dueAt && { dueAt: verdict.dueAt.toISOString() }),
  };
}

/** 0 done · 1 some item failed or a listing was incomplete · 3 stopped by budget or breaker. (2 is bad input, which has no report.) */
export function exitCodeOf(report: Report): 0 | 1 | 3 {
  if (report.stoppedBy === 'budget' || report.stoppedBy === 'breaker') return 3;
  return report.counts.failed > 0 || !report.complete ? 1 : 0;
}
