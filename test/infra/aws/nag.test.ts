import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type App, Validations } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, it } from 'vitest';
import type { GleanerProps } from '../../../infra/aws/gleaner.ts';
import { deploy } from './support.ts';

interface Finding {
  readonly ruleName: string;
  readonly reason?: string;
}

/** Synthesises with the rule pack of the app, whose findings end the synthesis. */
function check(app: App): { violations: Finding[]; suppressedViolations: Finding[] } {
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  try {
    app.synth();
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ValidationFailed')) throw error;
  }
  const report = JSON.parse(readFileSync(join(app.outdir, 'validation-report.json'), 'utf8'));
  return report.pluginReports[0];
}

const EVERYTHING: GleanerProps = {
  mode: 'enforce',
  regions: ['all'],
  alarmEmail: 'ops@example.com',
  policy: { snapshot: 'before-delete', clusters: ['blue'] },
};

describe('cdk-nag, AWS Solutions', () => {
  it.each<[string, GleanerProps]>([
    ['by default', {}],
    ['in enforce, with everything', EVERYTHING],
    ['in enforce, with little', { mode: 'enforce', policy: { kinds: ['nic'] }, removal: 'destroy' }],
  ])('finds nothing %s that is not explained', (_, props) => {
    const { violations, suppressedViolations } = check(deploy(props).app);
    expect(violations).toEqual([]);
    for (const { ruleName, reason } of suppressedViolations) {
      expect(ruleName).toMatch(/^AwsSolutions-IAM5\[Resource::/);
      expect(reason?.length).toBeGreaterThan(30);
    }
  });

  it('does look: a wildcard without its reason is found', () => {
    const { app, gleaner } = deploy();
    const statement = new PolicyStatement({ actions: ['s3:*'], resources: ['arn:aws:s3:::x'] });
    gleaner.functions.deciderRole.addToPolicy(statement);
    expect(check(app).violations.map(({ ruleName }) => ruleName)).toEqual(['AwsSolutions-IAM5[Action::s3:*]']);
  });
});
