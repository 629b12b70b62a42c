import { describe, expect, it } from 'vitest';
import { CANDIDATE_TAG_KEYS, PROTECTING_TAG_KEYS } from '../../../shared/aws/tags.ts';
import { ACCOUNT, allowedActions, policyAllows, statementsOf } from '../../support/iam.ts';
import { templateOf } from './support.ts';

const enforce = templateOf({ mode: 'enforce' });
const observe = templateOf();

const VOLUME = `arn:aws:ec2:us-east-1:${ACCOUNT}:volume/vol-1`;
const ENI = `arn:aws:ec2:us-east-1:${ACCOUNT}:network-interface/eni-1`;
const DELETES = [
  ['ec2:DeleteVolume', VOLUME],
  ['ec2:DeleteNetworkInterface', ENI],
] as const;
const OWNED = { 'gleaner-owner': 'i-1' };

const READS = ['ec2:DescribeInstances', 'ec2:DescribeNetworkInterfaces', 'ec2:DescribeVolumes'];
const LEDGER = ['BatchGetItem', 'DeleteItem', 'GetItem', 'PutItem', 'Query'].map((one) => `dynamodb:${one}`);
const QUEUES = ['ChangeMessageVisibility', 'DeleteMessage', 'GetQueueAttributes', 'ReceiveMessage', 'SendMessage'].map(
  (one) => `sqs:${one}`,
);
const LOGS = ['logs:CreateLogStream', 'logs:PutLogEvents'];
const COMMON = [...LEDGER, ...READS, 'events:PutEvents', ...LOGS, ...QUEUES];
const BY_HAND = [
  'cloudformation:DescribeStacks',
  'cloudformation:ListStackResources',
  'ec2:DescribeRegions',
  'resource-groups:ListGroupResources',
  'tag:GetResources',
];

describe('the role that decides', () => {
  it('holds exactly what deciding takes, in either mode', () => {
    for (const template of [observe, enforce])
      expect(allowedActions(template, 'DeciderRole')).toEqual(COMMON.toSorted());
  });

  it('asks for the regions only when it is given some', () => {
    const template = templateOf({ regions: ['eu-west-1', 'eu-central-1'] });
    expect(allowedActions(template, 'DeciderRole')).toContain('ec2:DescribeRegions');
  });

  it.each(DELETES)('may not %s', (action, resource) => {
    expect(policyAllows(enforce, 'DeciderRole', action, OWNED, { resource })).toBe(false);
  });
});

describe('the role that deletes', () => {
  it('in observe holds no permission to delete', () => {
    expect(allowedActions(observe, 'DeleterRole')).toEqual([...COMMON, ...BY_HAND].toSorted());
  });

  it('in enforce holds exactly the two deletions beside', () => {
    const deletes = DELETES.map(([action]) => action);
    expect(allowedActions(enforce, 'DeleterRole')).toEqual([...COMMON, ...BY_HAND, ...deletes].toSorted());
  });

  it.each(DELETES)('%s: only with a tag that makes a candidate', (action, resource) => {
    const allowed = (tags: Record<string, string>) => policyAllows(enforce, 'DeleterRole', action, tags, { resource });
    for (const key of [...CANDIDATE_TAG_KEYS, 'gleaner-owner']) expect(allowed({ [key]: 'x' })).toBe(true);
    expect(allowed({})).toBe(false);
    expect(allowed({ Name: 'node-1', 'kubernetes.io/cluster/a': 'owned' })).toBe(false);
  });

  it.each(DELETES)('%s: only its own kind of resource, in its own account', (action, resource) => {
    const other = resource === VOLUME ? ENI : VOLUME;
    const allowed = (arn: string) => policyAllows(enforce, 'DeleterRole', action, OWNED, { resource: arn });
    expect(allowed(resource)).toBe(true);
    expect(allowed(resource.replace(ACCOUNT, '999999999999'))).toBe(false);
    // One statement allows both kinds; an action never meets a resource of the other kind at EC2.
    expect(allowed(other.replace(/volume|network-interface/, 'instance'))).toBe(false);
  });

  it.each(DELETES)('%s: never where a tag protects', (action, resource) => {
    const allowed = (tags: Record<string, string>) =>
      policyAllows(enforce, 'DeleterRole', action, { ...OWNED, ...tags }, { resource });
    for (const value of ['true', '', 'False', 'no']) expect(allowed({ 'gleaner-keep': value })).toBe(false);
    expect(allowed({ 'gleaner-keep': 'false' })).toBe(true);
    for (const key of PROTECTING_TAG_KEYS) expect(allowed({ [key]: '' })).toBe(false);
  });

  it.each(DELETES)('%s: only in the regions of the deployment', (action, resource) => {
    const allowed = (template: typeof enforce, region: string) =>
      policyAllows(template, 'DeleterRole', action, OWNED, { resource, context: { 'aws:RequestedRegion': region } });
    expect(allowed(enforce, 'eu-west-1')).toBe(false);
    const two = templateOf({ mode: 'enforce', regions: ['eu-west-1', 'eu-central-1'] });
    expect(['eu-west-1', 'eu-central-1', 'us-east-1'].map((region) => allowed(two, region))).toEqual([
      true,
      true,
      false,
    ]);
    expect(allowed(templateOf({ mode: 'enforce', regions: ['all'] }), 'ap-east-1')).toBe(true);
  });
});

describe('permissions follow the policy', () => {
  it('clusters, owner tags, opt-outs and exclusions by tag', () => {
    const policy = {
      ownerTags: ['team-owner'],
      optOutTags: ['hands-off'],
      exclude: [{ tag: 'legal-hold' }, { tag: 'tier', value: 'db' }, { name: 'x-*' }],
    };
    const template = templateOf({ mode: 'enforce', clusters: ['blue'], policy });
    const allowed = (tags: Record<string, string>) => policyAllows(template, 'DeleterRole', 'ec2:DeleteVolume', tags);
    expect(allowed({ 'kubernetes.io/cluster/blue': 'owned' })).toBe(true);
    expect(allowed({ 'sigs.k8s.io/cluster-api-provider-aws/cluster/blue': 'owned' })).toBe(true);
    expect(allowed({ 'kubernetes.io/cluster/green': 'owned' })).toBe(false);
    expect(allowed({ 'team-owner': 'x' })).toBe(true);
    expect(allowed(OWNED)).toBe(false);
    expect(allowed({ 'team-owner': 'x', 'hands-off': '' })).toBe(false);
    expect(allowed({ 'team-owner': 'x', 'hands-off': 'false' })).toBe(true);
    expect(allowed({ 'team-owner': 'x', 'legal-hold': '' })).toBe(false);
    expect(allowed({ 'team-owner': 'x', tier: 'db' })).toBe(false);
    expect(allowed({ 'team-owner': 'x', tier: 'web' })).toBe(true);
  });

  it('a kind that is left out cannot be deleted', () => {
    const template = templateOf({ mode: 'enforce', policy: { kinds: ['nic'] } });
    expect(policyAllows(template, 'DeleterRole', 'ec2:DeleteNetworkInterface', OWNED, { resource: ENI })).toBe(true);
    expect(allowedActions(template, 'DeleterRole')).not.toContain('ec2:DeleteVolume');
  });

  it('snapshots only where the policy asks for them, tags only while one is made', () => {
    expect(allowedActions(enforce, 'DeleterRole').filter((one) => /Snapshot|Tags/.test(one))).toEqual([]);
    const template = templateOf({ mode: 'enforce', policy: { snapshot: 'before-delete' } });
    const snapshot = 'arn:aws:ec2:us-east-1::snapshot/snap-1';
    const allowed = (action: string, resource: string, tags = {}, context = {}) =>
      policyAllows(template, 'DeleterRole', action, tags, { resource, context });
    expect(allowed('ec2:CreateSnapshot', VOLUME, OWNED)).toBe(true);
    expect(allowed('ec2:CreateSnapshot', VOLUME)).toBe(false);
    expect(allowed('ec2:CreateSnapshot', snapshot)).toBe(true);
    expect(allowed('ec2:DescribeSnapshots', '*')).toBe(true);
    expect(allowed('ec2:CreateTags', snapshot, {}, { 'ec2:CreateAction': 'CreateSnapshot' })).toBe(true);
    expect(allowed('ec2:CreateTags', snapshot)).toBe(false);
    expect(allowed('ec2:CreateTags', VOLUME, OWNED, { 'ec2:CreateAction': 'CreateSnapshot' })).toBe(false);
    expect(allowedActions(template, 'DeciderRole')).toEqual(COMMON.toSorted());
  });

  it('many clusters spread over policies that each fit', () => {
    const clusters = Array.from({ length: 25 }, (_, index) => `shoot--project-name--cluster-number-${index}`);
    const regions = ['eu-west-1', 'eu-west-2', 'eu-central-1', 'us-east-1', 'us-west-2', 'ap-southeast-1'];
    const template = templateOf({ mode: 'enforce', clusters, regions });
    const policies = Object.values(template.findResources('AWS::IAM::ManagedPolicy'));
    expect(policies.length).toBeGreaterThan(2);
    for (const { Properties } of policies) expect(JSON.stringify(Properties.PolicyDocument).length).toBeLessThan(8000);
    for (const cluster of clusters) {
      expect(
        policyAllows(template, 'DeleterRole', 'ec2:DeleteVolume', { [`kubernetes.io/cluster/${cluster}`]: '1' }),
      ).toBe(true);
    }
    const tooMany = Array.from({ length: 200 }, (_, index) => `cluster-${index}`);
    expect(() => templateOf({ mode: 'enforce', clusters: tooMany })).toThrow(/^policy: too many/);
  });
});

describe('all roles', () => {
  it('notices only under our own name, on one bus', () => {
    for (const role of ['DeciderRole', 'DeleterRole']) {
      const may = (source: string) =>
        policyAllows(enforce, role, 'events:PutEvents', {}, { context: { 'events:source': source } });
      expect([may('gleaner'), may('aws.ec2')]).toEqual([true, false]);
    }
  });

  it('no wildcard in an action, none of AWS’s managed policies, every resource named where the service can', () => {
    for (const { Properties } of Object.values(enforce.findResources('AWS::IAM::Role'))) {
      expect(Properties.ManagedPolicyArns).toBeUndefined();
    }
    for (const role of ['DeciderRole', 'DeleterRole', 'SchedulerRole']) {
      for (const { Effect, Action, Resource } of statementsOf(enforce, role)) {
        expect(JSON.stringify(Action)).not.toContain('*');
        if (Effect === 'Allow' && Resource === '*') {
          expect([Action].flat().every((one) => /:(Describe|List|Get)/.test(one))).toBe(true);
        }
      }
    }
  });

  it('each function runs under its own role', () => {
    const roles = Object.values(enforce.findResources('AWS::Lambda::Function')).map(({ Properties }) => [
      String(Properties.Description).split(/[:,]/)[1]?.trim(),
      String(Properties.Role['Fn::GetAtt'][0]).replace(/^Gleaner(\w+Role).*/, '$1'),
    ]);
    expect(Object.fromEntries(roles)).toEqual({
      'writes down what hangs on VMs': 'DeciderRole',
      sweeps: 'DeciderRole',
      plan: 'DeleterRole',
      'rechecks and deletes': 'DeleterRole',
    });
  });

  it('the scheduler starts one function of its own account', () => {
    expect(allowedActions(enforce, 'SchedulerRole')).toEqual(['lambda:InvokeFunction', 'sqs:SendMessage']);
    enforce.hasResourceProperties('AWS::IAM::Role', {
      AssumeRolePolicyDocument: {
        Statement: [
          {
            Principal: { Service: 'scheduler.amazonaws.com' },
            Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
          },
        ],
      },
    });
  });
});
