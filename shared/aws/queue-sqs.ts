import { ChangeMessageVisibilityCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { Work, WorkQueue } from '../core/ports.ts';

/** SQS delays a message by 15 minutes at most; whoever gets one too early puts it back. */
const MAX_DELAY_S = 900;
/** And hides a received one for 12 hours at most. */
const MAX_HIDDEN_S = 43_200;

export interface SqsOptions {
  readonly region: string;
  readonly reapQueueUrl: string;
  readonly workQueueUrl: string;
  readonly deadLetterQueueUrl: string;
}

/** Deletions go to one queue, sweeps to another, what is given up to the dead-letter queue. */
export class SqsQueue implements WorkQueue {
  readonly #client: SQSClient;
  readonly #options: SqsOptions;

  constructor(options: SqsOptions) {
    this.#client = new SQSClient({
      region: options.region,
      maxAttempts: 6,
      requestHandler: { connectionTimeout: 3000, requestTimeout: 8000, throwOnRequestTimeout: true },
    });
    this.#options = options;
  }

  async send(work: Work, delayMs: number): Promise<void> {
    const { reapQueueUrl, workQueueUrl } = this.#options;
    const QueueUrl = work.kind === 'reap' ? reapQueueUrl : workQueueUrl;
    const DelaySeconds = Math.min(MAX_DELAY_S, Math.max(0, Math.ceil(delayMs / 1000)));
    await this.#client.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(work), DelaySeconds }));
  }

  async giveUp(work: Work, reason: string): Promise<void> {
    const MessageAttributes = { reason: { DataType: 'String', StringValue: reason.slice(0, 256) || 'unknown' } };
    const QueueUrl = this.#options.deadLetterQueueUrl;
    await this.#client.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(work), MessageAttributes }));
  }

  /** Hides a received message for a while; it must also be reported as failed, or it counts as done. */
  async postpone(queueUrl: string, receiptHandle: string, afterMs: number): Promise<void> {
    const VisibilityTimeout = Math.min(MAX_HIDDEN_S, Math.max(1, Math.ceil(afterMs / 1000)));
    const input = { QueueUrl: queueUrl, ReceiptHandle: receiptHandle, VisibilityTimeout };
    await this.#client.send(new ChangeMessageVisibilityCommand(input));
  }
}
