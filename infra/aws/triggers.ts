import { Duration, Stack } from 'aws-cdk-lib';
import { type EventPattern, Rule } from 'aws-cdk-lib/aws-events';
import { SqsQueue } from 'aws-cdk-lib/aws-events-targets';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { CfnSchedule } from 'aws-cdk-lib/aws-scheduler';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import type { Queues } from './queues.ts';

/** EC2's notices of state changes to one of these states. */
export function stateChanges(states: string[]): EventPattern {
  return {
    source: ['aws.ec2'],
    detailType: ['EC2 Instance State-change Notification'],
    detail: { state: states },
  };
}

/** EC2's state changes: what starts or shuts down is written down at once, what is terminated is looked into later. */
export function createRules(scope: Construct, queues: Queues): void {
  const rule = (id: string, states: string[], queue: Queue, description: string) =>
    new Rule(scope, id, {
      description,
      eventPattern: stateChanges(states),
      targets: [
        new SqsQueue(queue, {
          deadLetterQueue: queues.deadLetters,
          retryAttempts: 185,
          maxEventAge: Duration.hours(24),
        }),
      ],
    });
  rule('Started', ['running', 'shutting-down'], queues.claims, 'Gleaner: VMs whose NICs and disks are written down');
  rule('Terminated', ['terminated'], queues.events, 'Gleaner: VMs whose leftovers are looked for');
}

/**
 * The sweep's schedule. Written out instead of the target class of CDK, whose role may invoke every version of the function.
 */
export function createSchedule(scope: Construct, minutes: number, target: LambdaFunction, deadLetters: Queue): void {
  const role = new Role(scope, 'SchedulerRole', {
    description: 'Gleaner: EventBridge Scheduler starts the sweep.',
    assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
      // Only for a schedule of this account: the service must not be borrowed by another one.
      conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(scope).account } },
    }),
  });
  role.addToPolicy(new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [target.functionArn] }));
  role.addToPolicy(new PolicyStatement({ actions: ['sqs:SendMessage'], resources: [deadLetters.queueArn] }));
  const schedule = new CfnSchedule(scope, 'Sweep', {
    description: 'Gleaner: the sweep',
    scheduleExpression: `rate(${minutes} ${minutes === 1 ? 'minute' : 'minutes'})`,
    flexibleTimeWindow: { mode: 'OFF' },
    target: {
      arn: target.functionArn,
      roleArn: role.roleArn,
      input: '{}',
      retryPolicy: { maximumRetryAttempts: 3, maximumEventAgeInSeconds: 3600 },
      deadLetterConfig: { arn: deadLetters.queueArn },
    },
  });
  // The service checks at creation that it may assume the role and use it.
  schedule.node.addDependency(role);
}
