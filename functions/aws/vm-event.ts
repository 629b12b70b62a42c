import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { vmEvent } from '../../shared/core/engine.ts';
import { CloudError } from '../../shared/core/errors.ts';
import { eachRecord, Later } from './batch.ts';
import { callOf, type Wired, wire } from './wire.ts';

/**
 * EC2 state changes, through SQS: `running` and `shutting-down` become claims, `terminated` is looked into once the settle
 * time has passed. Decides only; what is to be deleted goes to the queue of the function that deletes.
 */
export async function handler(event: SQSEvent, context: Context): Promise<SQSBatchResponse> {
  const wired = wire();
  const { engine, environment } = wired;
  return eachRecord(
    event,
    engine.log,
    (body) => handle(wired, body, context),
    (record, afterMs) =>
      engine.queue.postpone(queueUrlOf(record, environment.eventQueueUrls), record.receiptHandle, afterMs),
  );
}

async function handle(wired: Wired, body: unknown, context: Context): Promise<void> {
  for (const event of wired.engine.cloud.parseEvent(body)) {
    let laterMs: number | undefined;
    try {
      laterMs = (await vmEvent(wired.engine, event, callOf(wired, context))).result.laterMs;
    } catch (error) {
      if (!(error instanceof CloudError) || error.retryAfterMs === undefined) throw error;
      wired.engine.log.warn({ vm: event.vmId, code: error.nativeCode }, 'event not handled yet');
      laterMs = error.retryAfterMs;
    }
    if (laterMs !== undefined) throw new Later(laterMs);
  }
}

/** `arn:aws:sqs:<region>:<account>:<name>` names the queue that the record came from. */
function queueUrlOf(record: SQSRecord, urls: readonly string[]): string {
  const name = record.eventSourceARN.split(':').at(-1) ?? '';
  const url = urls.find((one) => one.endsWith(`/${name}`));
  if (!url) throw new Error(`no URL is set for queue ${name}`);
  return url;
}
