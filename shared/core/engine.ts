import { randomUUID } from 'node:crypto';
import { asCloudError, InputError } from './errors.ts';
import { Ledger, readOnly } from './ledger.ts';
import type { Later } from './look.ts';
import type { RunMetrics } from './metrics.ts';
import type { Mode, VmEvent } from './model.ts';
import type { Policy } from './policy.ts';
import type {
  Clock,
  Cloud,
  CloudScope,
  LedgerStore,
  Log,
  Notifier,
  OpenedScopes,
  ReapWork,
  ScopeRequest,
  WorkQueue,
} from './ports.ts';
import { type Report, ReportBuilder, type ReportItem, type Verb } from './report.ts';
import { hasTime, messageOf, type Run, tell } from './run.ts';
import { sweepScope } from './sweep.ts';
import { type EventResult, handleVmEvent } from './vm-event.ts';
import { workOff } from './worker.ts';

/** What an entry point wires together once per process. */
export interface Engine {
  readonly cloud: Cloud;
  readonly store: LedgerStore;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly log: Log;
  readonly notifier: Notifier;
  /** Set where another function deletes, or where work can be put back for later. */
  readonly queue?: WorkQueue;
  /** Gets the figures of every finished run that is no plan. */
  readonly metrics?: (metrics: RunMetrics, verb: Verb) => void;
}

/** What one call adds. */
export interface Call {
  readonly mode: Mode;
  readonly signal: AbortSignal;
  readonly remainingMs?: () => number;
  readonly releaseBreaker?: boolean;
  /** Continues a run of this id instead of starting one. */
  readonly runId?: string;
  readonly maxItems?: number;
  readonly onItem?: (item: ReportItem) => void;
}

export interface SweepResult {
  readonly report: Report;
  /** What the cloud asked to try again later, with its scope; where there is a queue, it is there already. */
  readonly later: readonly (Later & { readonly scopeId: string })[];
}

/**
 * Plans or sweeps every scope of the request, one after another. One scope's failure does not stop the others.
 * @throws InputError for a request that names nothing of this cloud
 */
export async function sweep(
  engine: Engine,
  verb: 'plan' | 'sweep',
  request: ScopeRequest,
  call: Call,
): Promise<SweepResult> {
  const run = startRun(engine, verb, request, call);
  const opened = await openScopes(engine, request, call.signal);
  run.report.skipped.push(...opened.skipped);
  const later: (Later & { scopeId: string })[] = [];
  for (const scope of opened.scopes) {
    if (!hasTime(run)) {
      stopForTime(run);
      break;
    }
    await guarded(run, `sweep ${scope.id}`, async () => {
      for (const one of await sweepScope(run, scope, request)) later.push({ ...one, scopeId: scope.id });
    });
  }
  return { report: await finish(engine, run, opened.scopes), later };
}

/** One native VM event, already parsed, in its scope. */
export async function vmEvent(
  engine: Engine,
  event: VmEvent,
  call: Call,
): Promise<{ report: Report; result: EventResult }> {
  const request: ScopeRequest = { ...scopeOf(event), vm: event.vmId };
  const run = startRun(engine, 'vm-event', request, call);
  const { scopes } = await openScopes(engine, scopeOf(event), call.signal);
  const scope = scopes.find(({ id }) => id === event.scopeId);
  let result: EventResult = { due: [] };
  if (scope) result = await handleVmEvent(run, scope, event);
  else run.log.info({ scope: event.scopeId }, 'event of a scope that is not enabled');
  return { report: await finish(engine, run, scopes), result };
}

/** Deletes a batch that another function found; what must wait is back in the queue when this returns. */
export async function reap(engine: Engine, work: ReapWork, call: Call): Promise<Report> {
  const run = startRun(engine, 'reap', {}, { ...call, runId: work.runId });
  const { scopes } = await openScopes(engine, scopeOf(work), call.signal);
  const scope = scopes.find(({ id }) => id === work.scopeId);
  if (!scope) throw new Error(`scope ${work.scopeId} cannot be opened`);
  await workOff(run, scope, work);
  return finish(engine, run, [scope]);
}

/** `aws:eu-west-1` is a region, `azure:<id>` a subscription: what a scope id stands for is the cloud's to say when it is opened. */
function scopeOf({ scopeId }: { scopeId: string }): ScopeRequest {
  return { scopeIds: [scopeId] };
}

/**
 * The scopes of a request, in a cloud that can do what the policy asks for.
 * @throws InputError for a request that names nothing of this cloud, and for a policy that it cannot keep
 */
export async function openScopes(
  { cloud, policy }: Engine,
  request: ScopeRequest,
  signal: AbortSignal,
): Promise<OpenedScopes> {
  const opened = await cloud.open(request, signal);
  const types = opened.scopes.flatMap((scope) => scope.types);
  const unable = types.find((type) => type.kind === 'disk' && policy.kinds.includes('disk') && !type.snapshot);
  if (policy.snapshot !== 'never' && unable) {
    throw new InputError('policy.snapshot', `${unable.name} offers no snapshots: only \`never\` is possible here`);
  }
  return opened;
}

/** A call may name one of the policy's clusters, and never widens them: they are what the deployment was trusted with. */
function clustersOf({ clusters }: Policy, { cluster }: ScopeRequest): readonly string[] {
  if (cluster === undefined) return clusters;
  const isKnown = clusters.length === 0 || clusters.includes(cluster);
  if (!isKnown) throw new InputError('cluster', `${cluster} is none of the policy's clusters`);
  return [cluster];
}

export function startRun(engine: Engine, verb: Verb, request: ScopeRequest, call: Call): Run {
  const writes = verb !== 'plan' && verb !== 'explain';
  const runId = call.runId ?? randomUUID();
  const { policy, clock, log, notifier, queue } = engine;
  const { mode, signal, onItem } = call;
  const start = {
    runId,
    verb,
    mode,
    scope: request,
    startedAt: clock.now(),
    maxItems: call.maxItems ?? Number.POSITIVE_INFINITY,
  };
  return {
    runId,
    writes,
    mode: writes ? mode : 'observe',
    policy,
    clusters: clustersOf(policy, request),
    clock,
    log,
    ledger: new Ledger(writes ? engine.store : readOnly(engine.store)),
    notifier,
    report: new ReportBuilder({ ...start, ...(onItem && { onItem }) }),
    signal,
    remainingMs: call.remainingMs ?? (() => Number.POSITIVE_INFINITY),
    releaseBreaker: call.releaseBreaker ?? false,
    budget: { left: policy.budget.perRun },
    ...(queue && { queue }),
  };
}

async function guarded(run: Run, operation: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    run.report.incomplete(asCloudError(cause, operation));
    run.log.error({ operation, error: messageOf(cause) }, 'scope not finished');
  }
}

function stopForTime(run: Run): void {
  run.report.stop('time');
  run.report.complete = false;
}

async function finish(engine: Engine, run: Run, scopes: readonly CloudScope[]): Promise<Report> {
  const now = run.clock.now();
  const report = run.report.finish(sumCalls(scopes), now);
  if (!run.writes) return report;
  const { runId, verb, mode, counts, complete, stoppedBy, startedAt, finishedAt } = report;
  const summary = { runId, verb, mode, counts, complete, stoppedBy, startedAt, finishedAt };
  if (verb === 'sweep') {
    await guarded(run, 'ledger', () => run.ledger.finishedRun(runId, summary, now));
    await tell(run, { type: 'sweep-finished', detail: summary });
  }
  engine.metrics?.(run.report.metrics(now), verb);
  return report;
}

function sumCalls(scopes: readonly CloudScope[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const { calls } of scopes) {
    for (const [operation, count] of Object.entries(calls.counts())) sum[operation] = (sum[operation] ?? 0) + count;
  }
  return sum;
}
