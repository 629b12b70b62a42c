import { Duration } from 'aws-cdk-lib';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { TIMEOUT_S } from './timeouts.ts';

/** The queues between the functions. */
export interface Queues {
  /** VMs that started or are shutting down: what hangs on them is written down. */
  readonly claims: Queue;
  /** VMs that are gone, delayed by the settle time. */
  readonly events: Queue;
  /** Sweeps to go on with: one region each, or what a call had no time for. */
  readonly work: Queue;
  /** Batches to recheck and delete. */
  readonly reap: Queue;
  /** Whatever failed to the last try. */
  readonly deadLetters: Queue;
}

/** Each with encryption at rest, TLS only, and a common dead-letter queue. */
export function createQueues(scope: Construct, settleS: number): Queues {
  const common = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true };
  const deadLetters = new Queue(scope, 'DeadLetterQueue', { ...common, retentionPeriod: Duration.days(14) });
  const queue = (id: string, timeoutS: number, maxReceiveCount: number, deliveryDelayS = 0) =>
    new Queue(scope, id, {
      ...common,
      // Six times the function's timeout, as Lambda asks: retries of a throttled poller must not overlap a running call.
      visibilityTimeout: Duration.seconds(6 * timeoutS),
      deliveryDelay: Duration.seconds(deliveryDelayS),
      deadLetterQueue: { queue: deadLetters, maxReceiveCount },
    });
  return {
    // Looking at an event again later counts as one more receive, so these two have more of them than failures need.
    claims: queue('ClaimsQueue', TIMEOUT_S['vm-event'], 10),
    events: queue('EventsQueue', TIMEOUT_S['vm-event'], 10, settleS),
    work: queue('WorkQueue', TIMEOUT_S.schedule, 5),
    reap: queue('ReapQueue', TIMEOUT_S.reap, 5),
    deadLetters,
  };
}
