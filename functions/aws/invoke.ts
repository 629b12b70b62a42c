import type { Context } from 'aws-lambda';
import { sweep } from '../../shared/core/engine.ts';
import { explain, history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { ScopeRequest } from '../../shared/core/ports.ts';
import type { Tombstone } from '../../shared/core/records.ts';
import type { Report, ReportItem } from '../../shared/core/report.ts';
import { parseCall } from '../../shared/core/request.ts';
import { putBackLater } from '../../shared/core/worker.ts';
import { callOf, type Wired, wire } from './wire.ts';

/**
 * By hand: `{"action":"plan|sweep|explain|history","scope":{"resourceGroup"|"cluster"|"vm"|"region":…},"mode":…}`.
 * Deletes within the call, so that the answer says what became of each; what the cloud wants later goes to the queue.
 * @throws InputError naming the field of a wrong request: the call's FunctionError
 */
export async function handler(
  body: unknown,
  context: Context,
): Promise<Report | { item: ReportItem } | { items: Tombstone[] }> {
  const wired = wire();
  const { engine, environment } = wired;
  const call = parseCall(body, environment.mode);
  if (call.action === 'history') return { items: await history(new Ledger(engine.store), call.limit) };
  const scope = { ...call.scope, regions: call.scope.regions ?? environment.regions };
  if (call.action === 'explain') return { item: await explain(engine, call.id, scope, callOf(wired, context)) };
  return run(wired, call.action, scope, { ...callOf(wired, context), mode: call.mode });
}

async function run(
  { engine }: Wired,
  action: 'plan' | 'sweep',
  scope: ScopeRequest,
  call: ReturnType<typeof callOf>,
): Promise<Report> {
  const { queue, ...here } = engine;
  const { report, later } = await sweep(here, action, scope, call);
  await putBackLater(queue, engine.clock, report.runId, later);
  return report;
}
