import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Context } from 'aws-lambda';
import { DynamoLedger } from '../../shared/aws/ledger-dynamodb.ts';
import { emitMetrics } from '../../shared/aws/metrics.ts';
import { EventBridgeNotifier } from '../../shared/aws/notifier-eventbridge.ts';
import { SqsQueue } from '../../shared/aws/queue-sqs.ts';
import { aws } from '../../shared/aws/registry.ts';
import type { Call, Engine } from '../../shared/core/engine.ts';
import type { ReportItem } from '../../shared/core/report.ts';
import { SystemClock } from '../../shared/local/clock.ts';
import { createLog } from '../../shared/local/log.ts';
import { type Environment, readEnvironment } from './environment.ts';

/** Items in one answer: a Lambda answer over 6 MB makes a call that did its work count as failed. */
const MAX_ITEMS = 2000;

export interface Wired {
  readonly environment: Environment;
  /** Decides and hands over to the function that deletes. */
  readonly engine: Engine & { readonly queue: SqsQueue };
}

let wired: Wired | undefined;

/** Built at the first call of a process and kept: clients keep their connections, the policy is read once. */
export function wire(): Wired {
  wired ??= build();
  return wired;
}

function build(): Wired {
  const environment = readEnvironment(process.env, dirname(fileURLToPath(import.meta.url)));
  const { region, regions, policy, table, reapQueueUrl, workQueueUrl, deadLetterQueueUrl, eventBus, logLevel } =
    environment;
  const clock = new SystemClock();
  const log = createLog({ level: logLevel, stream: process.stdout });
  const queue = new SqsQueue({ region, reapQueueUrl, workQueueUrl, deadLetterQueueUrl });
  const store = new DynamoLedger({ region, table, clock });
  const notifier = new EventBridgeNotifier({ region, busName: eventBus });
  const cloud = aws({ region, regions });
  return { environment, engine: { cloud, store, policy, clock, log, notifier, queue, metrics: emitMetrics } };
}

/** What a Lambda invocation adds to a call: its time limit, an answer of bounded size, the evidence in the log. */
export function callOf({ engine, environment }: Wired, context: Context): Call {
  return {
    mode: environment.mode,
    signal: new AbortController().signal,
    remainingMs: () => context.getRemainingTimeInMillis(),
    maxItems: MAX_ITEMS,
    onItem: (item) => logItem(engine, item),
  };
}

/** Every verdict with its evidence; the kept ones only in detail, since they are most. */
function logItem({ log }: Engine, item: ReportItem): void {
  if (item.verdict === 'keep' && item.outcome === 'none') log.debug({ item }, 'kept');
  else log.info({ item }, item.outcome === 'none' ? item.verdict : item.outcome);
}
