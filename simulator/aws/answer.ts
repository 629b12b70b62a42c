import { XMLBuilder } from 'fast-xml-parser';
import type { Answer } from '../http.ts';
import type { Fault } from '../world/faults.ts';
import type { World } from '../world/world.ts';
import { ACTIONS, type Account, PARAMETERS } from './actions.ts';
import { Ec2Error } from './errors.ts';
import { groupsFailed, listGroupResources } from './groups.ts';
import type { Region } from './region.ts';
import type { Ec2Request } from './request.ts';

const NAMESPACE = 'http://ec2.amazonaws.com/doc/2016-11-15/';
const xml = new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: '@', suppressEmptyNode: true });

/** What a request meets before it is looked at. */
export interface Gate {
  readonly world: World;
  readonly denied: ReadonlySet<string>;
  readonly action: string;
  readonly fault: Fault | undefined;
}

export function ec2Answer(gate: Gate, open: () => Region, request: Ec2Request, account: Account): Answer {
  return caught(failed, () => {
    const region = open();
    pass(gate);
    const act = ACTIONS[gate.action];
    if (!act) throw new Ec2Error('InvalidAction', `The action ${gate.action} is not valid for this web service.`);
    request.checkParameters(PARAMETERS[gate.action] ?? []);
    const elements = act(region, request, account);
    return ok(gate.action, gate.fault?.kind === 'partial' ? halved(elements) : elements);
  });
}

/** Resource Groups, which speaks JSON, and of errors in its own words. */
export function groupsAnswer(gate: Gate, open: () => Region, body: string): Answer {
  return caught(groupsFailed, () => {
    const region = open();
    pass(gate);
    const answer = listGroupResources(region, body);
    return gate.fault?.kind === 'partial' ? { ...answer, body: '{}' } : answer;
  });
}

function pass({ world, denied, action, fault }: Gate): void {
  if (denied.has(action))
    throw new Ec2Error('UnauthorizedOperation', 'You are not authorized to perform this operation.', 403);
  if (fault?.kind === 'error') throw new Ec2Error(fault.code, fault.message, fault.status);
  if (!world.admit(action)) throw new Ec2Error('RequestLimitExceeded', 'Request limit exceeded.', 503);
}

function caught(asAnswer: (error: Ec2Error) => Answer, act: () => Answer): Answer {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof Ec2Error)) throw error;
    return asAnswer(error);
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

/** The error's code, of an answer of either service. */
export function codeOf({ body, headers }: Answer): { code?: string } {
  const code = /<Code>([^<]+)<\/Code>/.exec(body)?.[1] ?? headers?.['x-amzn-errortype'];
  return code === undefined ? {} : { code };
}
