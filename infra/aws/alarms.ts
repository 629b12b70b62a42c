import { Duration, Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, type IMetric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import type { Functions } from './functions.ts';
import { gleanerMetric } from './metrics.ts';
import type { Queues } from './queues.ts';
import type { Settings } from './settings.ts';

const FIVE_MINUTES = Duration.minutes(5);

interface AlarmSpec {
  readonly id: string;
  readonly description: string;
  readonly metric: IMetric;
  readonly threshold: number;
  readonly below?: boolean;
  readonly missing?: TreatMissingData;
}

/** Everything that a person should look at, each sent to the topic if there is one. */
export function createAlarms(scope: Construct, settings: Settings, functions: Functions, queues: Queues): Alarm[] {
  const topic = alarmTopic(scope, settings);
  const specs = [...failures(functions, queues), ...waiting(queues, settings), ...silences(settings)];
  return specs.map((spec) => {
    const alarm = new Alarm(scope, `${spec.id}Alarm`, {
      alarmDescription: `Gleaner: ${spec.description}`,
      metric: spec.metric,
      threshold: spec.threshold,
      evaluationPeriods: 1,
      comparisonOperator: spec.below
        ? ComparisonOperator.LESS_THAN_THRESHOLD
        : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: spec.missing ?? TreatMissingData.NOT_BREACHING,
    });
    if (topic) alarm.addAlarmAction(new SnsAction(topic));
    return alarm;
  });
}

function failures({ vmEvent, schedule, invoke, reap }: Functions, { deadLetters }: Queues): AlarmSpec[] {
  const functions = { VmEvent: vmEvent, Schedule: schedule, Invoke: invoke, Reap: reap };
  return [
    {
      id: 'DeadLetters',
      description: 'something was given up after its last try and lies in the dead-letter queue',
      metric: deadLetters.metricApproximateNumberOfMessagesVisible({ period: FIVE_MINUTES, statistic: 'Maximum' }),
      threshold: 1,
    },
    ...Object.entries(functions).map(([name, one]) => ({
      id: `${name}Errors`,
      description: `the function ${name} failed`,
      metric: one.metricErrors({ period: FIVE_MINUTES, statistic: 'Sum' }),
      threshold: 1,
    })),
  ];
}

/** A message that grows old means that its function does not run, or is throttled. */
function waiting({ claims, events, work, reap }: Queues, { settleS }: Settings): AlarmSpec[] {
  const old = (id: string, queue: Queue, seconds: number): AlarmSpec => ({
    id: `${id}Waiting`,
    description: `the oldest message of the queue ${id} is older than ${seconds} s`,
    metric: queue.metricApproximateAgeOfOldestMessage({ period: FIVE_MINUTES, statistic: 'Maximum' }),
    threshold: seconds,
  });
  return [
    old('Claims', claims, 3600),
    old('Events', events, settleS + 3600),
    old('Work', work, 3 * 3600),
    old('Reap', reap, 3 * 3600),
  ];
}

/** What the functions report of themselves, silence included. */
function silences({ scheduleMinutes }: Settings): AlarmSpec[] {
  return [
    {
      id: 'Breaker',
      description: 'the breaker stopped deletions: many owners were gone at once',
      metric: gleanerMetric('BreakerTripped'),
      threshold: 1,
    },
    {
      id: 'SweepMissing',
      description: `no sweep finished in two intervals of ${scheduleMinutes} min`,
      metric: gleanerMetric('SweepFinished', Duration.minutes(2 * scheduleMinutes)),
      threshold: 1,
      below: true,
      missing: TreatMissingData.BREACHING,
    },
  ];
}

function alarmTopic(scope: Construct, { alarmTopicArn, alarmEmail }: Settings): ITopic | undefined {
  if (alarmTopicArn !== undefined) return Topic.fromTopicArn(scope, 'AlarmTopic', alarmTopicArn);
  if (alarmEmail === undefined) return undefined;
  const topic = new Topic(scope, 'AlarmTopic', { displayName: 'Gleaner alarms', enforceSSL: true });
  topic.addSubscription(new EmailSubscription(alarmEmail));
  // A topic policy of one's own replaces the default one, under which the account's alarms may publish.
  topic.addToResourcePolicy(
    new PolicyStatement({
      principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(scope).account } },
    }),
  );
  return topic;
}
