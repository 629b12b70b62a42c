import { randomUUID } from 'node:crypto';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { sweep } from '../../shared/core/engine.ts';
import type { ScopeRequest, SweepWork } from '../../shared/core/ports.ts';
import type { Report } from '../../shared/core/report.ts';
import { parseWork } from '../../shared/core/work.ts';
import { eachRecord } from './batch.ts';
import { callOf, type Wired, wire } from './wire.ts';

/** Times that one sweep may go on in another call; one that never ends is an alarm, not a loop. */
const MAX_CONTINUATIONS = 5;

/**
 * The sweep. EventBridge Scheduler starts it; where it covers several regions it hands each to a call of its own, and
 * what it had no time for to the next. Decides only; deletions go to the queue of the function that deletes.
 * @returns the report, or, for a batch of its own messages, which of them failed
 */
export async function handler(
  event: SQSEvent | object,
  context: Context,
): Promise<Report | SQSBatchResponse | { handedOver: number }> {
  const wired = wire();
  if ('Records' in event) {
    return eachRecord(
      event,
      wired.engine.log,
      async (body) => {
        const work = parseWork(body);
        if (work.kind !== 'sweep') throw new Error(`a ${work.kind} message in the queue of sweeps`);
        await run(wired, work, context);
      },
      async () => {},
    );
  }
  const request: ScopeRequest = { regions: wired.environment.regions };
  const { scopes, skipped } = await wired.engine.cloud.open(request, new AbortController().signal);
  if (skipped.length > 0) wired.engine.log.info({ skipped }, 'regions skipped');
  if (scopes.length <= 1) return run(wired, { kind: 'sweep', runId: randomUUID(), request, attempt: 0 }, context);
  for (const { id } of scopes) {
    await wired.engine.queue.send({ kind: 'sweep', runId: randomUUID(), request: { scopeIds: [id] }, attempt: 0 }, 0);
  }
  return { handedOver: scopes.length };
}

async function run(wired: Wired, work: SweepWork, context: Context): Promise<Report> {
  const { engine } = wired;
  const { report } = await sweep(engine, 'sweep', work.request, { ...callOf(wired, context), runId: work.runId });
  if (report.stoppedBy !== 'time') return report;
  const next: SweepWork = { ...work, attempt: work.attempt + 1 };
  if (next.attempt < MAX_CONTINUATIONS) await engine.queue.send(next, 0);
  else await engine.queue.giveUp(next, 'a sweep that does not end');
  return report;
}
