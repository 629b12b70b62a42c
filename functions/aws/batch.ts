import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { InputError } from '../../shared/core/errors.ts';
import type { Log } from '../../shared/core/ports.ts';
import { messageOf } from '../../shared/core/run.ts';

/** Thrown by a record's work to have it back after a while. */
export class Later extends Error {
  override readonly name = 'Later';
  readonly afterMs: number;
  constructor(afterMs: number) {
    super(`later: in ${afterMs} ms`);
    this.afterMs = afterMs;
  }
}

/**
 * Works on a batch one record after another, so that a call that is frozen or ended leaves nothing running, and answers
 * with the records to bring back. One record's failure is its own; what cannot be read is tried until the queue's last
 * try moves it to the dead-letter queue.
 */
export async function eachRecord(
  event: SQSEvent,
  log: Log,
  work: (body: unknown, record: SQSRecord) => Promise<void>,
  postpone: (record: SQSRecord, afterMs: number) => Promise<void>,
): Promise<SQSBatchResponse> {
  const batchItemFailures: SQSBatchResponse['batchItemFailures'] = [];
  for (const record of event.Records) {
    try {
      await work(parse(record.body), record);
    } catch (error) {
      if (error instanceof Later) await postponed(record, error.afterMs, log, postpone);
      else
        log.error(
          { messageId: record.messageId, error: messageOf(error) },
          error instanceof InputError ? 'message refused' : 'message failed',
        );
      batchItemFailures.push({ itemIdentifier: record.messageId });
    }
  }
  return { batchItemFailures };
}

/** If it cannot be postponed it comes back at the queue's own time, which is no harm. */
async function postponed(
  record: SQSRecord,
  afterMs: number,
  log: Log,
  postpone: (record: SQSRecord, afterMs: number) => Promise<void>,
): Promise<void> {
  try {
    await postpone(record, afterMs);
    log.info({ messageId: record.messageId, afterMs }, 'looked at again later');
  } catch (error) {
    log.warn({ messageId: record.messageId, error: messageOf(error) }, 'not postponed');
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new InputError('message', 'is no JSON', { cause: error });
  }
}
