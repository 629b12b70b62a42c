import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { EventForwarder } from '../../../infra/aws/forwarder.ts';
import { allowedActions, policyAllows } from '../../support/iam.ts';
import { newFolder } from './support.ts';

const HOME = 'arn:aws:events:eu-west-1:123456789012:event-bus/default';

describe('event forwarder', () => {
  const stack = new Stack(new App({ outdir: newFolder() }), 'Other');
  new EventForwarder(stack, 'Forwarder', { homeRegion: 'eu-west-1' });
  const template = Template.fromStack(stack);

  it('sends all three changes to the other region’s bus', () => {
    template.hasResourceProperties('AWS::Events::Rule', {
      EventPattern: {
        source: ['aws.ec2'],
        'detail-type': ['EC2 Instance State-change Notification'],
        detail: { state: ['running', 'shutting-down', 'terminated'] },
      },
    });
  });

  it('may do nothing else', () => {
    expect(allowedActions(template, 'Forwarder')).toEqual(['events:PutEvents']);
    expect(policyAllows(template, 'Forwarder', 'events:PutEvents', {}, { resource: HOME })).toBe(true);
    const other = HOME.replace('default', 'other');
    expect(policyAllows(template, 'Forwarder', 'events:PutEvents', {}, { resource: other })).toBe(false);
  });
});
