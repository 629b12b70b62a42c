import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { sweep } from '../../shared/core/engine.ts';
import { InputError } from '../../shared/core/errors.ts';
import { explain, history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import type { ScopeRequest } from '../../shared/core/ports.ts';
import { type CallRequest, parseCall } from '../../shared/core/request.ts';
import { putBackLater } from '../../shared/core/worker.ts';
import { callOf, HTTP_MS, type Wired, wire } from './wire.ts';

/**
 * By hand: `POST {"action":"plan|sweep|explain|history","scope":{"resourceGroup"|"cluster"|"vm"|"subscription":…},"mode":…}`.
 * Deletes within the call, so that the answer says what became of each; what the cloud wants later goes to the queue.
 * 400 with `{"error":{"field","message"}}` for a wrong request.
 */
export async function handler(request: HttpRequest, context: InvocationContext): Promise<HttpResponseInit> {
  const wired = wire(context);
  try {
    const call = parseCall(parse(await request.text()), wired.environment.mode);
    return { status: 200, jsonBody: await answer(wired, call) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const { field, message } = error;
    return { status: 400, jsonBody: { error: { field, message } } };
  }
}

async function answer(wired: Wired, call: CallRequest): Promise<object> {
  const { queue, ...here } = wired.engine;
  if (call.action === 'history') return { items: await history(new Ledger(here.store), call.limit) };
  const scope = narrowed(wired, call);
  if (call.action === 'explain') return { item: await explain(here, call.id, scope, callOf(wired, HTTP_MS)) };
  const { report, later } = await sweep(here, call.action, scope, { ...callOf(wired, HTTP_MS), mode: call.mode });
  await putBackLater(queue, here.clock, report.runId, later);
  if (report.stoppedBy === 'time' && call.action === 'sweep' && call.mode === wired.environment.mode) {
    await queue.send({ kind: 'sweep', runId: report.runId, request: scope, attempt: 1 }, 0);
  }
  return report;
}

/** A deployment for some resource groups has rights in no other. */
function narrowed(
  { environment: { resourceGroups } }: Wired,
  call: { action: string; scope: ScopeRequest },
): ScopeRequest {
  const { scope } = call;
  if (resourceGroups === undefined || call.action === 'explain') return scope;
  const asked = scope.resourceGroup ?? (resourceGroups.length === 1 ? resourceGroups[0] : undefined);
  if (asked === undefined || !resourceGroups.includes(asked.toLowerCase())) {
    throw new InputError(
      'body.scope.resourceGroup',
      `name one that this deployment covers: ${resourceGroups.join(', ')}`,
    );
  }
  return { ...scope, resourceGroup: asked };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InputError('body', 'is no JSON', { cause });
  }
}
