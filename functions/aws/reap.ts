import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { reap } from '../../shared/core/engine.ts';
import { parseWork } from '../../shared/core/work.ts';
import { eachRecord } from './batch.ts';
import { callOf, wire } from './wire.ts';

/** Rechecks and deletes what the other functions found. What must wait is back in the queue before a record counts as done. */
export async function handler(event: SQSEvent, context: Context): Promise<SQSBatchResponse> {
  const wired = wire();
  return eachRecord(
    event,
    wired.engine.log,
    async (body) => {
      const work = parseWork(body);
      if (work.kind !== 'reap') throw new Error(`a ${work.kind} message in the queue of deletions`);
      await reap(wired.engine, work, callOf(wired, context));
    },
    async () => {},
  );
}
