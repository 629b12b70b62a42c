import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Match } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { only, properties, templateOf } from './support.ts';

const template = templateOf();

describe('alarms', () => {
  const alarms = properties<{ MetricName: string; Namespace: string; AlarmActions?: unknown[] }>(
    template,
    'AWS::CloudWatch::Alarm',
  );
  const names = (namespace: string) =>
    alarms.filter((one) => one.Namespace === namespace).map(({ MetricName }) => MetricName);

  it('watch dead letters, errors, what waits, the breaker and silence', () => {
    expect(names('AWS/Lambda')).toEqual(['Errors', 'Errors', 'Errors', 'Errors']);
    expect(names('AWS/SQS').sort()).toEqual([
      ...Array(4).fill('ApproximateAgeOfOldestMessage'),
      'ApproximateNumberOfMessagesVisible',
    ]);
    expect(names('Gleaner')).toEqual(['BreakerTripped', 'SweepFinished']);
  });

  it('the first dead letter is one too many', () => {
    template.hasResourceProperties('AWS::CloudWatch::Alarm', {
      MetricName: 'ApproximateNumberOfMessagesVisible',
      Statistic: 'Maximum',
      Threshold: 1,
      ComparisonOperator: 'GreaterThanOrEqualToThreshold',
      Dimensions: [
        { Name: 'QueueName', Value: { 'Fn::GetAtt': [Match.stringLikeRegexp('DeadLetterQueue'), 'QueueName'] } },
      ],
    });
  });

  it.each([
    ['30m', 3600],
    ['12h', 86_400],
  ])('no sweep finished in twice %s is an alarm', (schedule, period) => {
    templateOf({ schedule }).hasResourceProperties('AWS::CloudWatch::Alarm', {
      MetricName: 'SweepFinished',
      Dimensions: [{ Name: 'service', Value: 'gleaner' }],
      Period: period,
      EvaluationPeriods: 1,
      Statistic: 'Sum',
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'breaching',
    });
  });

  it('tell nobody by default, a given topic, or a topic of their own', () => {
    expect(alarms.flatMap(({ AlarmActions = [] }) => AlarmActions)).toEqual([]);
    const arn = 'arn:aws:sns:us-east-1:123456789012:ops';
    const given = templateOf({ alarmTopicArn: arn });
    given.allResourcesProperties('AWS::CloudWatch::Alarm', { AlarmActions: [arn] });
    given.resourceCountIs('AWS::SNS::Topic', 0);
    const own = templateOf({ alarmEmail: 'ops@example.com' });
    own.allResourcesProperties('AWS::CloudWatch::Alarm', {
      AlarmActions: [{ Ref: Match.stringLikeRegexp('AlarmTopic') }],
    });
    own.hasResourceProperties('AWS::SNS::Subscription', { Protocol: 'email', Endpoint: 'ops@example.com' });
    // A policy of its own replaces the topic's default: CloudWatch must be named.
    own.hasResourceProperties('AWS::SNS::TopicPolicy', {
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Effect: 'Allow',
            Principal: { Service: 'cloudwatch.amazonaws.com' },
            Action: 'sns:Publish',
          }),
        ]),
      },
    });
  });

  it('alarms and dashboard name metrics that the functions do emit', () => {
    const emitted = emittedMetrics();
    for (const name of names('Gleaner')) expect(emitted).toContain(name);
    const { DashboardBody } = only<{ DashboardBody: unknown }>(template, 'AWS::CloudWatch::Dashboard', '');
    const shown = [...JSON.stringify(DashboardBody).matchAll(/\\"Gleaner\\",\\"(\w+)\\"/g)].map(([, name]) => name);
    expect(shown.length).toBeGreaterThan(8);
    for (const name of shown) expect(emitted).toContain(name);
  });
});

/** Names that one run writes in CloudWatch's embedded metric format, under the dimension that the alarms look at. */
function emittedMetrics(): string[] {
  const file = join(import.meta.dirname, '../../../shared/aws/metrics.ts');
  const run = {
    deleted: 0,
    failed: 0,
    deferred: 0,
    keptByReason: {},
    diskGiBReclaimed: 0,
    interfacesReclaimed: 0,
    monthlyCostUsd: 0,
    breakerTripped: true,
    givenUp: 0,
  };
  const script = `(await import(${JSON.stringify(file)})).emitMetrics(${JSON.stringify(run)}, 'sweep')`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  const directives = output
    .split('\n')
    .filter((line) => line.includes('"_aws"'))
    .flatMap(
      (line) => JSON.parse(line)._aws.CloudWatchMetrics as { Dimensions: string[][]; Metrics: { Name: string }[] }[],
    );
  return directives
    .filter(({ Dimensions }) => Dimensions.some((one) => one.join() === 'service'))
    .flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name));
}
