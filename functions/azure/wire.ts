import type { InvocationContext } from '@azure/functions';
import { credentialOf, endpointOf } from '../../shared/azure/clients.ts';
import { TablesLedger } from '../../shared/azure/ledger-tables.ts';
import { LogNotifier, logMetrics } from '../../shared/azure/notifier-log.ts';
import { StorageQueue } from '../../shared/azure/queue-storage.ts';
import { azure } from '../../shared/azure/registry.ts';
import type { StorageAccess } from '../../shared/azure/storage.ts';
import type { Call, Engine } from '../../shared/core/engine.ts';
import { InputError } from '../../shared/core/errors.ts';
import type { Cloud, Log } from '../../shared/core/ports.ts';
import type { ReportItem } from '../../shared/core/report.ts';
import { SystemClock } from '../../shared/local/clock.ts';
import { createLog } from '../../shared/local/log.ts';
import { type Environment, readEnvironment } from './environment.ts';

/** Items in one answer, so that it stays far below what the host takes. */
const MAX_ITEMS = 2000;
/** host.json's `functionTimeout`. */
const FUNCTION_MS = 600_000;
/** The load balancer before the app gives an HTTP call 230 s. */
export const HTTP_MS = 230_000;

export interface Wired {
  readonly environment: Environment;
  readonly engine: Engine & { readonly queue: StorageQueue; readonly store: TablesLedger };
}

interface Kept {
  readonly environment: Environment;
  readonly clock: SystemClock;
  readonly queue: StorageQueue;
  readonly store: TablesLedger;
  readonly cloud: Cloud;
}

let kept: Kept | undefined;

/** Clients are built at the first call of a process and kept; the log is the call's own, so that its lines carry its id. */
export function wire(context: InvocationContext): Wired {
  kept ??= build();
  const { environment, ...parts } = kept;
  const log = createLog({ level: environment.logLevel, stream: { write: (line) => writeLine(context, line) } });
  const { policy } = environment;
  return { environment, engine: { ...parts, policy, log, notifier: new LogNotifier(log), metrics: logMetrics(log) } };
}

function build(): Kept {
  const environment = readEnvironment(process.env);
  const { subscriptions, table, storage, endpoint, authorityHost, managedIdentityClientId } = environment;
  const clock = new SystemClock();
  const set = {
    ...(endpoint !== undefined && { endpoint }),
    ...(authorityHost !== undefined && { authorityHost }),
    ...(managedIdentityClientId !== undefined && { managedIdentityClientId }),
  };
  const options = { clock, subscriptions, ...set };
  const access = (service: 'queueUrl' | 'tableUrl'): StorageAccess =>
    'connectionString' in storage
      ? storage
      : { url: storage[service], credential: credentialOf(options, { ...endpointOf(set), loopback: false }) };
  const store = new TablesLedger({ access: access('tableUrl'), table, clock });
  return { environment, clock, store, queue: new StorageQueue(access('queueUrl')), cloud: azure(options) };
}

/** One JSON line under the level that it names, which the host files it under. */
function writeLine(context: InvocationContext, line: string): void {
  const text = line.trimEnd();
  const level = /^\{"level":"(debug|info|warn|error)"/.exec(text)?.[1] as
    | 'debug'
    | 'info'
    | 'warn'
    | 'error'
    | undefined;
  context[level ?? 'info'](text);
}

/** What an invocation adds to a call: its time limit, an answer of bounded size, the evidence in the log. */
export function callOf({ environment, engine }: Wired, limitMs = FUNCTION_MS): Call {
  const end = performance.now() + limitMs;
  return {
    mode: environment.mode,
    signal: new AbortController().signal,
    remainingMs: () => end - performance.now(),
    maxItems: MAX_ITEMS,
    onItem: (item) => logItem(engine.log, item),
  };
}

/** Every verdict with its evidence; the kept ones only in detail, since they are most. */
function logItem(log: Log, item: ReportItem): void {
  if (item.verdict === 'keep' && item.outcome === 'none') log.debug({ item }, 'kept');
  else log.info({ item }, item.outcome === 'none' ? item.verdict : item.outcome);
}

/** What the host hands over of a message: an object where it was JSON, text otherwise. @throws InputError */
export function bodyOf(message: unknown): unknown {
  if (typeof message !== 'string') return message;
  try {
    return JSON.parse(message);
  } catch (cause) {
    throw new InputError('message', 'is no JSON', { cause });
  }
}
