import type { IncomingMessage } from 'node:http';
import { send, serve } from '../http.ts';
import { World } from '../world/world.ts';
import { ACTIONS, type Account, isWrite } from './actions.ts';
import { codeOf, ec2Answer, groupsAnswer } from './answer.ts';
import { type ClosedCode, closed } from './errors.ts';
import { EventFeed } from './events.ts';
import { Region } from './region.ts';
import { Ec2Request } from './request.ts';

export interface AwsSimulatorOptions {
  readonly world?: World;
  /** 0 = any free one. */
  readonly port?: number;
  readonly regions?: readonly string[];
  /** Regions that exist and are not enabled. */
  readonly optInRegions?: readonly string[];
  /** How a region that the account cannot use answers. */
  readonly closedAs?: ClosedCode;
}

export interface AwsSimulator {
  readonly url: string;
  readonly world: World;
  region(name?: string): Region;
  readonly events: EventFeed;
  /** Actions that IAM refuses: `UnauthorizedOperation`. */
  readonly denied: Set<string>;
  /** Every answer that was given, with its action: to be held against the API's model. */
  readonly answers: { action: string; body: string }[];
  /** EC2's documented buckets: describes 100 + 20/s, deletes 100 + 10/s. */
  throttle(): void;
  close(): Promise<void>;
}

const MAX_ANSWERS = 2000;

/** The EC2 Query API, and ListGroupResources of Resource Groups, on loopback. */
export async function startAwsSimulator(options: AwsSimulatorOptions = {}): Promise<AwsSimulator> {
  const world = options.world ?? new World();
  const account: Account = {
    regions: options.regions ?? ['us-east-1', 'eu-west-1', 'eu-central-1'],
    optIn: options.optInRegions ?? ['af-south-1'],
  };
  const events = new EventFeed(world);
  const regions = new Map(
    account.regions.map((name) => [name, new Region(name, world, (change) => events.emit(change))]),
  );
  const denied = new Set<string>();
  const answers: AwsSimulator['answers'] = [];

  const server = await serve(options.port ?? 0, async (request, body, response) => {
    const region = regions.get(regionOf(request));
    const ec2 = new Ec2Request(body);
    const isGroups = request.url?.startsWith('/list-group-resources') ?? false;
    const action = isGroups ? 'ListGroupResources' : ec2.action;
    const target = ec2.text('VolumeId') ?? ec2.text('NetworkInterfaceId') ?? '';
    const fault = world.faults.take(action, target);
    const open = (): Region => {
      world.now();
      if (!region) throw closed(options.closedAs ?? 'AuthFailure');
      return region;
    };
    const gate = { world, denied, action, fault };
    const answer = isGroups ? groupsAnswer(gate, open, body) : ec2Answer(gate, open, ec2, account);
    world.log({
      cloud: 'aws',
      operation: action,
      write: isWrite(action),
      target,
      status: answer.status,
      ...codeOf(answer),
    });
    if (!isGroups && answers.length < MAX_ANSWERS) answers.push({ action, body: answer.body });
    await send(response, answer, world.latencyMs, fault);
  });

  return {
    url: server.url,
    world,
    events,
    denied,
    answers,
    region: (name = account.regions[0] ?? '') => {
      const region = regions.get(name);
      if (!region) throw new Error(`no simulated region ${name}`);
      return region;
    },
    throttle: () => {
      for (const action of Object.keys(ACTIONS)) {
        if (action.startsWith('Describe')) world.throttle(action, 100, 20);
        if (action.startsWith('Delete')) world.throttle(action, 100, 10);
      }
    },
    close: server.close,
  };
}

/** `Credential=<key>/<date>/<region>/ec2/aws4_request` */
function regionOf({ headers }: IncomingMessage): string {
  return /Credential=[^/]+\/\d+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1] ?? '';
}
