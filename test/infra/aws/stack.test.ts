import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../../../shared/core/policy.ts';
import { deploy, only, properties, type Reference, target, templateOf } from './support.ts';

const template = templateOf();

const FUNCTIONS = [
  ['GleanerVmEvent', 60],
  ['GleanerSchedule', 900],
  ['GleanerInvoke', 900],
  ['GleanerReap', 300],
] as const;

describe('functions', () => {
  it.each(FUNCTIONS)('%s: Node 24 on arm64, its time, JSON logs in a group of its own', (id, timeout) => {
    expect(only(template, 'AWS::Lambda::Function', id)).toMatchObject({
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      Handler: 'index.handler',
      MemorySize: 512,
      Timeout: timeout,
      LoggingConfig: {
        LogFormat: 'JSON',
        ApplicationLogLevel: 'DEBUG',
        LogGroup: { Ref: expect.stringContaining(id) },
      },
    });
    expect(only(template, 'AWS::Logs::LogGroup', id)).toMatchObject({ RetentionInDays: 90 });
  });

  it('tells them what they need', () => {
    const url = (id: string) => ({ Ref: expect.stringContaining(id) });
    const common = {
      NODE_OPTIONS: '--enable-source-maps',
      GLEANER_MODE: 'observe',
      GLEANER_POLICY_FILE: 'policy.json',
      GLEANER_REGIONS: { Ref: 'AWS::Region' },
      GLEANER_TABLE: url('Ledger'),
      GLEANER_REAP_QUEUE_URL: url('ReapQueue'),
      GLEANER_WORK_QUEUE_URL: url('WorkQueue'),
      GLEANER_DEAD_LETTER_QUEUE_URL: url('DeadLetterQueue'),
      GLEANER_EVENT_BUS: 'default',
      GLEANER_LOG_LEVEL: 'info',
      POWERTOOLS_METRICS_NAMESPACE: 'Gleaner',
      POWERTOOLS_SERVICE_NAME: 'gleaner',
    };
    const more = { GLEANER_CLAIMS_QUEUE_URL: url('ClaimsQueue'), GLEANER_EVENTS_QUEUE_URL: url('EventsQueue') };
    for (const [id] of FUNCTIONS) {
      const { Environment } = only<{ Environment: { Variables: object } }>(template, 'AWS::Lambda::Function', id);
      expect(Environment.Variables).toEqual(id === 'GleanerVmEvent' ? { ...common, ...more } : common);
    }
  });

  it('settings reach them', () => {
    const other = templateOf({ mode: 'enforce', regions: ['eu-west-1', 'us-east-1'], logLevel: 'debug', retention: 7 });
    for (const [id] of FUNCTIONS) {
      expect(only(other, 'AWS::Lambda::Function', id)).toMatchObject({
        Environment: {
          Variables: { GLEANER_MODE: 'enforce', GLEANER_REGIONS: 'eu-west-1,us-east-1', GLEANER_LOG_LEVEL: 'debug' },
        },
      });
      expect(only(other, 'AWS::Logs::LogGroup', id)).toMatchObject({ RetentionInDays: 7 });
    }
  });

  it('no call is made twice by itself, and a failed sweep is not lost', () => {
    expect(only(template, 'AWS::Lambda::EventInvokeConfig', 'GleanerInvoke')).toMatchObject({
      MaximumRetryAttempts: 0,
    });
    expect(only(template, 'AWS::Lambda::EventInvokeConfig', 'GleanerSchedule')).toMatchObject({
      MaximumRetryAttempts: 1,
    });
    const { DeadLetterConfig } = only<{ DeadLetterConfig: { TargetArn: Reference } }>(
      template,
      'AWS::Lambda::Function',
      'GleanerSchedule',
    );
    expect(target(DeadLetterConfig.TargetArn)).toContain('DeadLetterQueue');
  });

  it('the one that puts back its own work is not stopped as a loop', () => {
    expect(only(template, 'AWS::Lambda::Function', 'GleanerReap')).toMatchObject({ RecursiveLoop: 'Allow' });
    expect(only(template, 'AWS::Lambda::Function', 'GleanerSchedule')).not.toHaveProperty('RecursiveLoop');
  });

  it('nothing is reserved: it would fail in a new account', () => {
    for (const one of properties(template, 'AWS::Lambda::Function'))
      expect(one).not.toHaveProperty('ReservedConcurrentExecutions');
  });

  it('carry the policy beside their bundle', () => {
    const { app } = deploy({ clusters: ['blue'], policy: { grace: '2h', exclude: [{ tag: 'legal-hold' }] } });
    const { directory } = app.synth();
    const { files } = JSON.parse(readFileSync(join(directory, 'Test.assets.json'), 'utf8')) as {
      files: Record<string, { source: { path: string; packaging: string } }>;
    };
    const assets = Object.values(files).filter(({ source }) => source.packaging === 'zip');
    expect(assets).toHaveLength(4);
    for (const { source } of assets) {
      const folder = join(directory, source.path);
      expect(readFileSync(join(folder, 'index.mjs'), 'utf8')).toContain('handler');
      const policy = parsePolicy(readFileSync(join(folder, 'policy.json'), 'utf8'));
      expect(policy).toEqual(parsePolicy({ clusters: ['blue'], grace: '2h', exclude: [{ tag: 'legal-hold' }] }));
    }
  });
});

describe('queues', () => {
  const VISIBILITY = { ClaimsQueue: 360, EventsQueue: 360, WorkQueue: 5400, ReapQueue: 1800 };

  it.each(Object.entries(VISIBILITY))('%s is hidden for six times its function’s time: %i s', (id, visibility) => {
    const queue = only<{ RedrivePolicy: { deadLetterTargetArn: Reference; maxReceiveCount: number } }>(
      template,
      'AWS::SQS::Queue',
      id,
    );
    expect(queue).toMatchObject({ VisibilityTimeout: visibility, SqsManagedSseEnabled: true });
    expect(target(queue.RedrivePolicy.deadLetterTargetArn)).toContain('DeadLetterQueue');
    expect(queue.RedrivePolicy.maxReceiveCount).toBeGreaterThanOrEqual(5);
  });

  it('only what is terminated waits, for the settle time', () => {
    const delay = (id: string, from = template) =>
      only<{ DelaySeconds?: number }>(from, 'AWS::SQS::Queue', id).DelaySeconds ?? 0;
    expect(['ClaimsQueue', 'EventsQueue', 'WorkQueue', 'ReapQueue'].map((id) => delay(id))).toEqual([0, 300, 0, 0]);
    expect(delay('EventsQueue', templateOf({ policy: { settle: '15m' } }))).toBe(900);
    expect(delay('EventsQueue', templateOf({ policy: { settle: '1500ms' } }))).toBe(2);
  });

  it('dead letters stay for 14 days', () => {
    expect(only(template, 'AWS::SQS::Queue', 'DeadLetterQueue')).toMatchObject({ MessageRetentionPeriod: 1_209_600 });
  });

  it('all refuse plain http', () => {
    expect(properties(template, 'AWS::SQS::QueuePolicy')).toHaveLength(5);
    for (const policy of properties(template, 'AWS::SQS::QueuePolicy')) {
      expect(policy).toMatchObject({
        PolicyDocument: {
          Statement: expect.arrayContaining([
            expect.objectContaining({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
          ]),
        },
      });
    }
  });

  it.each([
    ['ClaimsQueue', 'GleanerVmEvent', 10, 5],
    ['EventsQueue', 'GleanerVmEvent', 5, 5],
    ['WorkQueue', 'GleanerSchedule', 1, 5],
    ['ReapQueue', 'GleanerReap', 1, 2],
  ])('%s feeds %s, with partial failures', (queue, fn, batch, concurrency) => {
    const mappings = properties<{ EventSourceArn: Reference; FunctionName: Reference }>(
      template,
      'AWS::Lambda::EventSourceMapping',
    );
    const mapping = mappings.find(({ EventSourceArn }) => target(EventSourceArn).includes(queue));
    expect(mapping).toMatchObject({
      BatchSize: batch,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      ScalingConfig: { MaximumConcurrency: concurrency },
    });
    expect(target(mapping?.FunctionName ?? {})).toContain(fn);
  });
});

describe('triggers', () => {
  it.each([
    ['Started', ['running', 'shutting-down'], 'ClaimsQueue'],
    ['Terminated', ['terminated'], 'EventsQueue'],
  ])('%s: EC2’s state changes to %j go to %s', (id, states, queue) => {
    const rule = only<{ Targets: { Arn: Reference; DeadLetterConfig: { Arn: Reference } }[] }>(
      template,
      'AWS::Events::Rule',
      id,
    );
    expect(rule).toMatchObject({
      State: 'ENABLED',
      EventPattern: {
        source: ['aws.ec2'],
        'detail-type': ['EC2 Instance State-change Notification'],
        detail: { state: states },
      },
    });
    expect(rule.Targets.map(({ Arn, DeadLetterConfig }) => [target(Arn), target(DeadLetterConfig.Arn)])).toEqual([
      [expect.stringContaining(queue), expect.stringContaining('DeadLetterQueue')],
    ]);
    // Neither queue takes messages from any other rule.
    const policy = only(template, 'AWS::SQS::QueuePolicy', `${queue}Policy`);
    expect(policy).toMatchObject({
      PolicyDocument: {
        Statement: expect.arrayContaining([
          expect.objectContaining({
            Effect: 'Allow',
            Principal: { Service: 'events.amazonaws.com' },
            Condition: { ArnEquals: { 'aws:SourceArn': { 'Fn::GetAtt': [expect.stringContaining(id), 'Arn'] } } },
          }),
        ]),
      },
    });
  });

  it('the schedule starts the sweep, retries, and keeps what it could not start', () => {
    const schedule = only<{ Target: { Arn: Reference; DeadLetterConfig: { Arn: Reference } } }>(
      template,
      'AWS::Scheduler::Schedule',
      'Sweep',
    );
    expect(schedule).toMatchObject({
      ScheduleExpression: 'rate(30 minutes)',
      Target: { Input: '{}', RetryPolicy: { MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 3600 } },
    });
    expect(target(schedule.Target.Arn)).toContain('GleanerSchedule');
    expect(target(schedule.Target.DeadLetterConfig.Arn)).toContain('DeadLetterQueue');
    expect(only(templateOf({ schedule: '1h30m' }), 'AWS::Scheduler::Schedule', 'Sweep')).toMatchObject({
      ScheduleExpression: 'rate(90 minutes)',
    });
  });
});

describe('ledger', () => {
  it('is a table on demand that expires, can be recovered, is encrypted and stays', () => {
    template.hasResource('AWS::DynamoDB::Table', {
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
        AttributeDefinitions: [
          { AttributeName: 'pk', AttributeType: 'S' },
          { AttributeName: 'sk', AttributeType: 'S' },
        ],
        BillingMode: 'PAY_PER_REQUEST',
        TimeToLiveSpecification: { AttributeName: 'expires', Enabled: true },
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        SSESpecification: { SSEEnabled: true },
        DeletionProtectionEnabled: false,
      },
    });
  });

  it('can be protected, or given away with the stack', () => {
    templateOf({ deletionProtection: true }).hasResourceProperties('AWS::DynamoDB::Table', {
      DeletionProtectionEnabled: true,
    });
    const gone = templateOf({ removal: 'destroy' });
    gone.hasResource('AWS::DynamoDB::Table', { DeletionPolicy: 'Delete' });
    gone.allResources('AWS::Logs::LogGroup', { DeletionPolicy: 'Delete' });
    template.allResources('AWS::Logs::LogGroup', { DeletionPolicy: 'Retain' });
  });
});
