import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import type { Role } from 'aws-cdk-lib/aws-iam';
import {
  ApplicationLogLevel,
  Architecture,
  EventSourceMapping,
  type FunctionProps,
  Function as LambdaFunction,
  LoggingFormat,
  RecursiveLoop,
  Runtime,
  SystemLogLevel,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import type { AwsFunction } from '../build.ts';
import { functionCode, POLICY_FILE } from './assets.ts';
import { busArn, createDeciderRole, createDeleterRole, type Surroundings } from './permissions.ts';
import type { Queues } from './queues.ts';
import type { Settings } from './settings.ts';
import { TIMEOUT_S } from './timeouts.ts';

/** Name of the event bus that the notices go to. */
const EVENT_BUS = 'default';

/** Memory in MB, which on Lambda is also the share of a CPU. */
const MEMORY_MB = 512;

/** The functions of a deployment and their roles. */
export interface Functions {
  readonly vmEvent: LambdaFunction;
  readonly schedule: LambdaFunction;
  readonly invoke: LambdaFunction;
  readonly reap: LambdaFunction;
  readonly deciderRole: Role;
  readonly deleterRole: Role;
}

/** Four functions under two roles, each with its own log group, and the queues that feed them. */
export function createFunctions(scope: Construct, settings: Settings, table: Table, queues: Queues): Functions {
  const around: Surroundings = { settings, table, queues, eventBusArn: busArn(Stack.of(scope), EVENT_BUS) };
  const logs = {
    vmEvent: logGroup(scope, 'VmEventLogs', settings),
    schedule: logGroup(scope, 'ScheduleLogs', settings),
    invoke: logGroup(scope, 'InvokeLogs', settings),
    reap: logGroup(scope, 'ReapLogs', settings),
  };
  const deciderRole = createDeciderRole(scope, around, [logs.vmEvent, logs.schedule]);
  const deleterRole = createDeleterRole(scope, around, [logs.invoke, logs.reap]);
  const make = (id: string, name: AwsFunction, role: Role, logs: LogGroup, more: Partial<FunctionProps>) =>
    new LambdaFunction(scope, id, {
      ...commonProps(scope, name, settings),
      environment: environmentOf(settings, table, queues),
      role,
      logGroup: logs,
      ...more,
    });
  const vmEvent = make('VmEvent', 'vm-event', deciderRole, logs.vmEvent, {
    description: 'Gleaner: writes down what hangs on VMs, looks into what deleted ones left behind',
  });
  vmEvent.addEnvironment('GLEANER_CLAIMS_QUEUE_URL', queues.claims.queueUrl);
  vmEvent.addEnvironment('GLEANER_EVENTS_QUEUE_URL', queues.events.queueUrl);
  const schedule = make('Schedule', 'schedule', deciderRole, logs.schedule, {
    description: 'Gleaner: sweeps',
    // The next sweep comes by itself: one more try, then the call is kept where an alarm watches.
    retryAttempts: 1,
    maxEventAge: Duration.hours(1),
    deadLetterQueue: queues.deadLetters,
  });
  const invoke = make('Invoke', 'invoke', deleterRole, logs.invoke, {
    description: 'Gleaner: plan, sweep, explain and history by hand',
    // A person who called asynchronously must not find it done twice.
    retryAttempts: 0,
  });
  const reap = make('Reap', 'reap', deleterRole, logs.reap, {
    description: 'Gleaner: rechecks and deletes',
    // It puts back what must wait, more often than the 16 rounds after which Lambda would stop it; it counts its own tries.
    recursiveLoop: RecursiveLoop.ALLOW,
  });
  feed('Claims', queues.claims, vmEvent, 10, 5);
  feed('Events', queues.events, vmEvent, 5, 5);
  feed('Work', queues.work, schedule, 1, 5);
  // Two at most: EC2's buckets are the account's, and more callers only meet throttling.
  feed('Reap', queues.reap, reap, 1, 2);
  return { vmEvent, schedule, invoke, reap, deciderRole, deleterRole };
}

function logGroup(scope: Construct, id: string, settings: Settings): LogGroup {
  return new LogGroup(scope, id, {
    retention: settings.retention,
    removalPolicy: settings.removal === 'destroy' ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
  });
}

function commonProps(scope: Construct, name: AwsFunction, settings: Settings) {
  return {
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    handler: 'index.handler',
    code: functionCode(scope, name, settings),
    timeout: Duration.seconds(TIMEOUT_S[name]),
    memorySize: MEMORY_MB,
    loggingFormat: LoggingFormat.JSON,
    // The functions filter by themselves; a filter here would drop the metrics, which are log lines, with the rest.
    applicationLogLevelV2: ApplicationLogLevel.DEBUG,
    systemLogLevelV2: SystemLogLevel.INFO,
  };
}

function environmentOf(settings: Settings, table: Table, queues: Queues): Record<string, string> {
  return {
    NODE_OPTIONS: '--enable-source-maps',
    GLEANER_MODE: settings.mode,
    GLEANER_POLICY_FILE: POLICY_FILE,
    GLEANER_REGIONS: (settings.regions ?? [Stack.of(table).region]).join(','),
    GLEANER_TABLE: table.tableName,
    GLEANER_REAP_QUEUE_URL: queues.reap.queueUrl,
    GLEANER_WORK_QUEUE_URL: queues.work.queueUrl,
    GLEANER_DEAD_LETTER_QUEUE_URL: queues.deadLetters.queueUrl,
    GLEANER_EVENT_BUS: EVENT_BUS,
    GLEANER_LOG_LEVEL: settings.logLevel,
    POWERTOOLS_METRICS_NAMESPACE: 'Gleaner',
    POWERTOOLS_SERVICE_NAME: 'gleaner',
  };
}

/**
 * Concurrency is capped here and not reserved at the function: a new account has ten concurrent calls in all, of which
 * none can be reserved, and the deployment would fail.
 */
function feed(id: string, queue: IQueue, target: LambdaFunction, batchSize: number, maxConcurrency: number): void {
  new EventSourceMapping(target, `From${id}`, {
    target,
    eventSourceArn: queue.queueArn,
    batchSize,
    maxConcurrency,
    reportBatchItemFailures: true,
  });
}
