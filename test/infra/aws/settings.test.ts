import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { describe, expect, it } from 'vitest';
import type { GleanerProps } from '../../../infra/aws/gleaner.ts';
import { propsFromContext, readSettings } from '../../../infra/aws/settings.ts';
import { deploy, emptyBundles, newFolder } from './support.ts';

const ROOT = join(import.meta.dirname, '../../..');
const folder = newFolder();
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('properties', () => {
  it.each<[string, object]>([
    ['props.mode', { mode: 'delete' }],
    ['props.regions.0', { regions: ['Frankfurt'] }],
    ['props.regions', { regions: ['all', 'eu-west-1'] }],
    ['props.regions', { regions: [] }],
    ['props.clusters.1', { clusters: ['blue', 'a b'] }],
    ['props.clusters', { clusters: ['blue'], policy: { clusters: ['green'] } }],
    ['props.policy', { policy: '/nowhere/policy.yaml' }],
    ['props.mode', { mode: 'enforce', policy: { mode: 'observe' } }],
    ['policy.graze', { policy: { graze: '1h' } }],
    ['policy.graze', { policy: file('wrong.yaml', 'graze: 1h\n') }],
    ['policy.settle', { policy: { settle: '15m1s' } }],
    ['props.schedule', { schedule: '' }],
    ['props.schedule', { schedule: 'rate(30 minutes)' }],
    ['props.schedule', { schedule: '4m' }],
    ['props.schedule', { schedule: '90s' }],
    ['props.schedule', { schedule: '13h' }],
    ['props.alarmTopicArn', { alarmTopicArn: 'ops' }],
    ['props.alarmEmail', { alarmEmail: 'ops' }],
    ['props.alarmEmail', { alarmEmail: 'a@example.com', alarmTopicArn: 'arn:aws:sns:us-east-1:123456789012:ops' }],
    ['props.retention', { retention: 42 }],
    ['props.deletionProtection', { deletionProtection: 'yes' }],
    ['props.removal', { removal: 'delete' }],
    ['props.logLevel', { logLevel: 'trace' }],
    ['props.bundles', { bundles: folder }],
    ['props.shedule', { shedule: '1h' }],
  ])('%s is named when it is wrong: %j', (field, props) => {
    expect(() => deploy(props as GleanerProps)).toThrow(
      expect.objectContaining({ name: 'InputError', field, message: expect.stringMatching(`^${field}: .`) }),
    );
  });

  it('the policy’s file may be YAML or JSON, and empty', () => {
    const policyOf = (policy: string) => readSettings({ policy });
    expect(policyOf(file('a.yaml', 'grace: 2h\nclusters: [blue]\n')).policyInput).toEqual({
      grace: '2h',
      clusters: ['blue'],
    });
    expect(policyOf(file('a.json', '{"settle":"10m"}')).settleS).toBe(600);
    expect(policyOf(file('empty.yaml', '# defaults\n')).policyInput).toEqual({});
  });
});

describe('context', () => {
  const props = (context: Record<string, unknown>) => propsFromContext(new App({ context }).node);
  const settings = (context: Record<string, unknown>) => readSettings(props(context));

  it('takes strings as the command line gives them', () => {
    const context = {
      mode: 'enforce',
      regions: 'eu-west-1, us-east-1',
      clusters: 'blue,green',
      schedule: '1h',
      retention: '30',
      deletionProtection: 'true',
      removal: 'destroy',
      '@aws-cdk/core:some-flag': true,
      'aws:cdk:enable-path-metadata': true,
      'cdk-migrate': true,
    };
    expect(settings(context)).toMatchObject({
      mode: 'enforce',
      regions: ['eu-west-1', 'us-east-1'],
      policy: { clusters: ['blue', 'green'] },
      scheduleMinutes: 60,
      retention: 30,
      deletionProtection: true,
      removal: 'destroy',
    });
    expect(settings({ deletionProtection: 'false' }).deletionProtection).toBe(false);
  });

  it('takes lists as cdk.json has them', () => {
    expect(settings({ regions: ['eu-west-1'] }).regions).toEqual(['eu-west-1']);
  });

  it.each([
    ['context.regoins', { regoins: 'eu-west-1' }],
    ['context.mode', { mode: '' }],
    ['context.retention', { retention: '' }],
    ['context.deletionProtection', { deletionProtection: '' }],
    ['context.regions.0', { regions: '' }],
  ])('%s is named when it is wrong', (field, context) => {
    expect(() => props(context)).toThrow(expect.objectContaining({ name: 'InputError', field }));
  });
});

describe('cdk synth', { timeout: 90_000 }, () => {
  const synth = (...context: string[]) => {
    const out = newFolder();
    const flags = ['--quiet', '--no-notices', '--output', out, ...context.flatMap((one) => ['--context', one])];
    execFileSync(process.execPath, [join(ROOT, 'node_modules/aws-cdk/bin/cdk'), 'synth', ...flags], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: 'pipe',
    });
    return JSON.parse(readFileSync(join(out, 'Gleaner.template.json'), 'utf8'));
  };

  it('gives the stack, without an account or credentials', () => {
    const template = synth(`bundles=${emptyBundles()}`, 'mode=enforce', 'regions=all');
    const types = Object.values(template.Resources as Record<string, { Type: string }>).map(({ Type }) => Type);
    expect(types.filter((type) => type === 'AWS::Lambda::Function')).toHaveLength(4);
    expect(Object.keys(template.Outputs)).toEqual(['InvokeFunction', 'LedgerTable']);
  });

  it('fails with the name of what is wrong', () => {
    expect(() => synth(`bundles=${emptyBundles()}`, 'mode=delete')).toThrow(/context\.mode: /);
  });
});
