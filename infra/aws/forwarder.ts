import { Aws } from 'aws-cdk-lib';
import { EventBus, Rule } from 'aws-cdk-lib/aws-events';
import { EventBus as EventBusTarget } from 'aws-cdk-lib/aws-events-targets';
import { Construct } from 'constructs';
import { stateChanges } from './triggers.ts';

export interface EventForwarderProps {
  /** Region of the {@link Gleaner} that looks after this one too. */
  readonly homeRegion: string;
}

/**
 * Sends the VM events of one more region to the default event bus of Gleaner's own, for a deployment whose `regions` name
 * both. Without it the sweep alone finds what VMs of that region left.
 */
export class EventForwarder extends Construct {
  constructor(scope: Construct, id: string, { homeRegion }: EventForwarderProps) {
    super(scope, id);
    const home = `arn:${Aws.PARTITION}:events:${homeRegion}:${Aws.ACCOUNT_ID}:event-bus/default`;
    new Rule(this, 'ToHome', {
      description: `Gleaner: VM events for ${homeRegion}`,
      eventPattern: stateChanges(['running', 'shutting-down', 'terminated']),
      targets: [new EventBusTarget(EventBus.fromEventBusArn(this, 'Home', home))],
    });
  }
}
