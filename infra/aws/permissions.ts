import { Aws, type Stack, Validations } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { ManagedPolicy, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import type { Construct, IConstruct } from 'constructs';
import { InputError } from '../../shared/core/errors.ts';
import { allowDeletes, allowSnapshots, denyDeletes, ec2Arn, inRegions } from './delete-permissions.ts';
import type { Queues } from './queues.ts';
import type { Settings } from './settings.ts';

/** A managed policy holds 6,144 characters; the rest is for its frame, and for tokens that grow when they are resolved. */
const CHARACTERS_A_POLICY = 5600;
/** A role takes ten managed policies by default. */
const POLICIES_A_ROLE = 10;
/** The source that our notices carry. */
const EVENT_SOURCE = 'gleaner';

/** What the roles are given access to. */
export interface Surroundings {
  readonly settings: Settings;
  readonly table: Table;
  readonly queues: Queues;
  readonly eventBusArn: string;
}

/**
 * Role of the functions that decide (vm-event, schedule): reads, writes the ledger, hands over. It cannot delete or change
 * anything outside of Gleaner's own table and queues.
 */
export function createDeciderRole(scope: Construct, around: Surroundings, logs: readonly LogGroup[]): Role {
  const { settings, queues } = around;
  const { claims, events, work, reap, deadLetters } = queues;
  const role = newRole(scope, 'DeciderRole', 'Gleaner decides: reads EC2, writes its ledger, hands over.');
  add(role, [
    ...common(around, logs),
    // With regions of its own to choose from, the sweep asks which of them the account has enabled.
    ...(settings.regions ? [describeRegions()] : []),
    ...consume([claims, events, work]),
    allow(['sqs:SendMessage'], arns([reap, work, deadLetters])),
  ]);
  explain(role, '*', READS);
  return role;
}

/** Role of the functions that delete (reap, invoke). Only in `enforce` does it hold the permission. */
export function createDeleterRole(scope: Construct, around: Surroundings, logs: readonly LogGroup[]): Role {
  const { settings, queues } = around;
  const { reap, deadLetters } = queues;
  const role = newRole(scope, 'DeleterRole', 'Gleaner deletes: volumes and network interfaces with known tags.');
  add(role, [
    ...common(around, logs),
    // A call by hand may name a region or a resource group.
    describeRegions(),
    ...resourceGroups(settings),
    ...consume([reap]),
    allow(['sqs:SendMessage'], arns([reap, deadLetters])),
  ]);
  explain(role, '*', READS);
  explain(role, groupArn(), 'A call by hand names any group of the account.');
  if (settings.mode === 'enforce') addDeletes(scope, role, settings);
  return role;
}

function newRole(scope: Construct, id: string, description: string): Role {
  return new Role(scope, id, { assumedBy: new ServicePrincipal('lambda.amazonaws.com'), description });
}

function add(role: Role, statements: readonly PolicyStatement[]): void {
  for (const statement of statements) role.addToPolicy(statement);
}

function allow(
  actions: string[],
  resources: string[],
  conditions?: Record<string, Record<string, unknown>>,
): PolicyStatement {
  return new PolicyStatement({ actions, resources, ...(conditions && { conditions }) });
}

const arns = (queues: readonly IQueue[]) => queues.map(({ queueArn }) => queueArn);

/** What both roles do: read EC2, keep the ledger, tell, log. */
function common({ settings, table, eventBusArn }: Surroundings, logs: readonly LogGroup[]): PolicyStatement[] {
  return [
    // EC2's reads cannot be narrowed to resources, only to regions.
    allow(
      ['ec2:DescribeVolumes', 'ec2:DescribeNetworkInterfaces', 'ec2:DescribeInstances'],
      ['*'],
      inRegions(settings),
    ),
    allow(
      ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:Query', 'dynamodb:PutItem', 'dynamodb:DeleteItem'],
      [table.tableArn],
    ),
    allow(['events:PutEvents'], [eventBusArn], { StringEquals: { 'events:source': EVENT_SOURCE } }),
    // Instead of AWSLambdaBasicExecutionRole, which may write to every log group of the account.
    allow(
      ['logs:CreateLogStream', 'logs:PutLogEvents'],
      logs.map(({ logGroupArn }) => logGroupArn),
    ),
  ];
}

function describeRegions(): PolicyStatement {
  return allow(['ec2:DescribeRegions'], ['*']);
}

/**
 * The members of a Resource Groups group. The service resolves a group by tag or by stack with the caller's permissions:
 * the last three are what its reference asks for beside the call itself.
 */
function resourceGroups(settings: Settings): PolicyStatement[] {
  const region = inRegions(settings);
  return [
    allow(['resource-groups:ListGroupResources'], [groupArn()], region),
    allow(['tag:GetResources', 'cloudformation:DescribeStacks', 'cloudformation:ListStackResources'], ['*'], region),
  ];
}

function groupArn(): string {
  return `arn:${Aws.PARTITION}:resource-groups:*:${Aws.ACCOUNT_ID}:group/*`;
}

/** What Lambda's poller does with the function's role, and the function itself to look at a message again later. */
function consume(queues: readonly IQueue[]): PolicyStatement[] {
  const actions = [
    'sqs:ReceiveMessage',
    'sqs:DeleteMessage',
    'sqs:GetQueueAttributes',
    // Lambda's poller hides messages again when it scales down; vm-event postpones.
    'sqs:ChangeMessageVisibility',
  ];
  return [allow(actions, arns(queues))];
}

/** Managed policies, since the statements outgrow what fits into a role. */
function addDeletes(scope: Construct, role: Role, settings: Settings): void {
  const groups = inPolicies([...denyDeletes(settings), ...allowSnapshots(settings), ...allowDeletes(settings)]);
  if (groups.length > POLICIES_A_ROLE) {
    throw new InputError(
      'policy',
      `too many clusters, tags or exclusions for the ${POLICIES_A_ROLE} policies of a role`,
    );
  }
  for (const [index, statements] of groups.entries()) {
    const policy = new ManagedPolicy(scope, `DeletePolicy${index}`, {
      description: 'Gleaner: deletion of volumes and network interfaces by their tags.',
      roles: [role],
      statements,
    });
    explain(policy, '*', settings.policy.snapshot === 'never' ? DENIES : `${DENIES} ${READS}`);
    for (const type of ['volume', 'network-interface']) explain(policy, ec2Arn(type), BY_TAG);
    if (settings.policy.snapshot !== 'never') explain(policy, ec2Arn('snapshot', ''), SNAPSHOTS);
  }
}

/** Packs statements into as few policies as hold them. */
function inPolicies(statements: readonly PolicyStatement[]): PolicyStatement[][] {
  const groups: PolicyStatement[][] = [];
  let room = 0;
  for (const statement of statements) {
    const size = JSON.stringify(statement.toStatementJson()).length;
    if (size > room) {
      groups.push([]);
      room = CHARACTERS_A_POLICY;
    }
    room -= size;
    groups.at(-1)?.push(statement);
  }
  return groups;
}

const READS =
  'Reads only, nearly all without resource-level permissions; they are held to the regions of the deployment.';
const BY_TAG =
  'What outlives VMs is not known at deployment: each statement is held to a tag and to the regions instead.';
const DENIES = 'A denial that covers everything: of what carries the tag nothing is deleted.';
const SNAPSHOTS = 'Snapshots do not exist before they are made; their tags can be set only while they are.';

/** Tells cdk-nag why a wildcard stands where it does. */
function explain(construct: IConstruct, resource: string, reason: string): void {
  // cdk-nag names tokens so; others mean the same by other names.
  const named = resource.replace(Aws.PARTITION, '<AWS::Partition>').replace(Aws.ACCOUNT_ID, '<AWS::AccountId>');
  Validations.of(construct).acknowledge({ id: `AwsSolutions::AwsSolutions-IAM5[Resource::${named}]`, reason });
}

/** ARN of an event bus of this account and region by its name. */
export function busArn(stack: Stack, name: string): string {
  return stack.formatArn({ service: 'events', resource: 'event-bus', resourceName: name });
}
