import type { IncomingMessage } from 'node:http';
import { XMLBuilder } from 'fast-xml-parser';
import { type Answer, send, serve } from '../http.ts';
import type { Fault } from '../world/faults.ts';
import { World } from '../world/world.ts';
import { ACTIONS, type Account, isWrite } from './actions.ts';
import { Ec2Error } from './errors.ts';
import { EventFeed } from './events.ts';
import { listGroupResources } from './groups.ts';
import { Region } from './region.ts';
import { Ec2Request } from './request.ts';

export interface AwsSimulatorOptions {
  readonly world?: World;
  /** 0 = any free one. */
  readonly port?: number;
  readonly regions?: readonly string[];
  /** Regions that exist and are not enabled. */
  readonly optInRegions?: readonly string[];
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

const NAMESPACE = 'http://ec2.amazonaws.com/doc/2016-11-15/';
const MAX_ANSWERS = 2000;
const xml = new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: '@', suppressEmptyNode: true });

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
    const answer = isGroups ? listGroupResources(region, body) : answerEc2(world, region, ec2, account, denied, fault);
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

function answerEc2(
  world: World,
  region: Region | undefined,
  request: Ec2Request,
  account: Account,
  denied: ReadonlySet<string>,
  fault: Fault | undefined,
): Answer {
  try {
    world.now();
    if (!region) throw new Ec2Error('AuthFailure', 'AWS was not able to validate the provided access credentials', 401);
    if (denied.has(request.action))
      throw new Ec2Error('UnauthorizedOperation', 'You are not authorized to perform this operation.', 403);
    if (fault?.kind === 'error') throw new Ec2Error(fault.code, fault.message, fault.status);
    if (!world.admit(request.action)) throw new Ec2Error('RequestLimitExceeded', 'Request limit exceeded.', 503);
    const act = ACTIONS[request.action];
    if (!act) throw new Ec2Error('InvalidAction', `The action ${request.action} is not valid for this web service.`);
    return ok(
      request.action,
      fault?.kind === 'partial' ? halved(act(region, request, account)) : act(region, request, account),
    );
  } catch (error) {
    if (!(error instanceof Ec2Error)) throw error;
    return failed(error);
  }
}

function ok(action: string, elements: Record<string, unknown>): Answer {
  const body = { [`${action}Response`]: { '@xmlns': NAMESPACE, requestId: crypto.randomUUID(), ...elements } };
  return { status: 200, body: `<?xml version="1.0" encoding="UTF-8"?>\n${xml.build(body)}` };
}

function failed({ code, message, status }: Ec2Error): Answer {
  const body = { Response: { Errors: { Error: { Code: code, Message: message } }, RequestID: crypto.randomUUID() } };
  return { status, body: `<?xml version="1.0" encoding="UTF-8"?>\n${xml.build(body)}` };
}

/** A page without its list: what a broken answer in between looks like. */
function halved(elements: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(elements).filter(([, value]) => typeof value !== 'object'));
}

/** `Credential=<key>/<date>/<region>/ec2/aws4_request` */
function regionOf({ headers }: IncomingMessage): string {
  return /Credential=[^/]+\/\d+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1] ?? '';
}

function codeOf({ body }: Answer): { code?: string } {
  const code = /<Code>([^<]+)<\/Code>/.exec(body)?.[1];
  return code === undefined ? {} : { code };
}
