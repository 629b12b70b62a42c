import type { Answer } from '../http.ts';
import { ArmError, armErrors } from './errors.ts';
import { groupOf } from './estate.ts';
import { groupBody, needGroup, removeGroup } from './groups.ts';
import type { OperationNames, Operations } from './operations.ts';
import { type Body, type DiskBody, type Kind, kindOf, LOCATION, type NicBody, TENANT, TYPES } from './shapes.ts';
import type { Subscription } from './subscription.ts';
import { write } from './writes.ts';

/** One request to ARM, in parts. */
export interface ArmRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly origin: string;
  readonly body: string;
}

/** What a path asks for, and the name of the action as roles name it. */
export interface Route {
  readonly action: string;
  readonly subscription: string;
  answer(subscription: Subscription): Answer;
}

/** A resource, a group's resources of a type, or (without a group) the subscription's. */
const RESOURCE = /^\/subscriptions\/([^/]+)(?:\/resourcegroups\/([^/]+))?\/providers\/([^/]+\/[^/]+)(?:\/([^/]+))?$/i;
const SUBSCRIPTION = /^\/subscriptions\/([^/]+)$/i;
const GROUP = /^\/subscriptions\/([^/]+)\/resourcegroups(?:\/([^/]+))?$/i;
const POLL =
  /^\/subscriptions\/([^/]+)\/(?:providers\/(microsoft\.(?:compute|network))\/locations\/[^/]+\/)?(\w+)\/(0p-\d+)$/i;
const LOCKS = /^(\/subscriptions\/([^/]+)(?:\/.+)?)\/providers\/microsoft\.authorization\/locks$/i;

const NAMES: Readonly<Record<'disk' | 'nic' | 'group', OperationNames>> = {
  disk: { status: 'DiskOperations', result: 'DiskOperationResults', apiVersion: '2026-03-02' },
  nic: { status: 'operations', result: 'operationResults', apiVersion: '2025-09-01' },
  group: { status: 'operationstatuses', result: 'operationresults', apiVersion: '2025-04-01' },
};

/** @throws ArmError where no such thing is served */
export function routeOf(request: ArmRequest, operations: Operations): Route {
  const { method, path } = request;
  const poll = POLL.exec(path);
  if (poll) return pollRoute(poll, operations);
  const locks = LOCKS.exec(path);
  if (locks) return locksRoute(locks[1] ?? '', locks[2] ?? '');
  const resource = RESOURCE.exec(path);
  const [, subscription = '', group, type = '', name] = resource ?? [];
  const kind = kindOf(type);
  if (resource && kind && (group !== undefined || name === undefined)) {
    if (name === undefined)
      return { action: `${TYPES[kind]}/read`, subscription, answer: (one) => list(one, kind, group, request) };
    if (method === 'GET')
      return { action: `${TYPES[kind]}/read`, subscription, answer: (one) => ok(read(one, kind, group ?? '', name)) };
    if (method === 'DELETE' && kind !== 'vm') {
      return {
        action: `${TYPES[kind]}/delete`,
        subscription,
        answer: (one) => remove(one, kind, group ?? '', name, request, operations),
      };
    }
    if (method === 'PUT' && (kind === 'disk' || kind === 'snapshot')) {
      const answer = (one: Subscription) =>
        write(one, kind, putOf(one, group ?? '', name, request), NAMES.disk, operations);
      return { action: `${TYPES[kind]}/write`, subscription, answer };
    }
    throw armErrors.notAllowed(method);
  }
  const whole = SUBSCRIPTION.exec(path);
  if (whole) return subscriptionRoute(whole[1] ?? '', method);
  const groups = GROUP.exec(path);
  if (!groups) throw armErrors.noSuchPath(path);
  return groupRoute(groups[1] ?? '', groups[2], request, operations);
}

function putOf(one: Subscription, group: string, name: string, { origin, body }: ArmRequest) {
  return { group: needGroup(one, group), name, body, base: operationsBase(one, 'disk', origin) };
}

function operationsBase(one: Subscription, kind: 'disk' | 'nic', origin: string): string {
  const provider = kind === 'disk' ? 'Microsoft.Compute' : 'Microsoft.Network';
  return `${origin}/subscriptions/${one.id}/providers/${provider}/locations/${LOCATION}`;
}

function subscriptionRoute(subscription: string, method: string): Route {
  if (method !== 'GET') throw armErrors.notAllowed(method);
  const answer = (one: Subscription) =>
    ok({
      id: `/subscriptions/${one.id}`,
      subscriptionId: one.id,
      tenantId: TENANT,
      displayName: 'Simulated',
      state: one.state,
      authorizationSource: 'RoleBased',
      managedByTenants: [],
    });
  return { action: 'Microsoft.Resources/subscriptions/read', subscription, answer };
}

function pollRoute(
  [, subscription = '', provider, word = '', id = '']: RegExpExecArray,
  operations: Operations,
): Route {
  const kind = provider === undefined ? 'group' : /compute/i.test(provider) ? 'disk' : 'nic';
  const action = `${provider ?? 'Microsoft.Resources'}/locations/operations/read`;
  const isResult = word.toLowerCase() === NAMES[kind].result.toLowerCase();
  return { action, subscription, answer: (one) => operations.poll(id, isResult, one.pace[kind]) };
}

function locksRoute(scope: string, subscription: string): Route {
  const answer = (one: Subscription) => {
    const value = [...one.locks].filter(([at]) => `${scope.toLowerCase()}/`.startsWith(`${at}/`));
    return ok({
      value: value.map(([at, level]) => ({
        id: `${at}/providers/Microsoft.Authorization/locks/keep`,
        name: 'keep',
        type: 'Microsoft.Authorization/locks',
        properties: { level },
      })),
    });
  };
  return { action: 'Microsoft.Authorization/locks/read', subscription, answer };
}

function groupRoute(
  subscription: string,
  name: string | undefined,
  request: ArmRequest,
  operations: Operations,
): Route {
  const action = (verb: string) => `Microsoft.Resources/subscriptions/resourceGroups/${verb}`;
  if (name === undefined) throw armErrors.noSuchPath(request.path);
  if (request.method === 'DELETE') {
    const answer = (one: Subscription) => removeGroup(one, name, request.origin, NAMES.group, operations);
    return { action: action('delete'), subscription, answer };
  }
  if (request.method !== 'GET') throw armErrors.notAllowed(request.method);
  return { action: action('read'), subscription, answer: (one) => ok(groupBody(one, name)) };
}

function read(one: Subscription, kind: Kind, group: string, name: string): Body {
  const known = needGroup(one, group);
  const body = one.get(`${one.groupId(known)}/providers/${TYPES[kind]}/${name}`);
  if (!body) throw armErrors.resourceNotFound(TYPES[kind], name, group);
  return body;
}

function list(
  one: Subscription,
  kind: Kind,
  group: string | undefined,
  { method, path, query, origin }: ArmRequest,
): Answer {
  if (method !== 'GET') throw armErrors.notAllowed(method);
  if (group !== undefined) needGroup(one, group);
  const rows = [...one.all(kind)].filter(({ id }) => group === undefined || groupOf(id) === group.toLowerCase());
  const from = Number(query.get('$skiptoken') ?? 0);
  if (!Number.isInteger(from) || from < 0) throw new ArmError(400, 'InvalidParameter', 'The $skiptoken is not valid.');
  const value = rows.slice(from, from + one.pageSize);
  const next = new URLSearchParams(query);
  next.set('$skiptoken', String(from + value.length));
  const more = from + value.length < rows.length ? { nextLink: `${origin}${path}?${next.toString()}` } : {};
  return ok({ value, ...more });
}

function remove(
  one: Subscription,
  kind: Exclude<Kind, 'vm'>,
  group: string,
  name: string,
  { origin }: ArmRequest,
  operations: Operations,
): Answer {
  const id = `${one.groupId(needGroup(one, group))}/providers/${TYPES[kind]}/${name}`;
  const body = one.get(id);
  if (!body) return { status: 204, body: '' };
  refuseUse(one, body);
  const lane = kind === 'nic' ? 'nic' : 'disk';
  const base = operationsBase(one, lane, origin);
  const state = (provisioningState: string) => {
    const now = one.get(id);
    if (now) one.put({ ...now, properties: { ...now.properties, provisioningState } } as Body);
  };
  state('Deleting');
  return operations.begin(base, NAMES[lane], one.pace[lane], () => {
    const failure = one.failAtEnd.get(id.toLowerCase());
    if (!failure) return one.remove(id);
    state('Failed');
    throw new ArmError(409, failure.code, failure.message);
  });
}

/** What Azure itself refuses. A disk whose attach is in flight reads `Unattached`, and it deletes it. */
function refuseUse(one: Subscription, body: Body): void {
  if (body.type === TYPES.nic) {
    const { virtualMachine, privateEndpoint } = (body as NicBody).properties;
    if (virtualMachine?.id) throw armErrors.nicInUse(body.id, virtualMachine.id);
    if (privateEndpoint?.id) throw armErrors.nicOfEndpoint(body.id, privateEndpoint.id);
    const reserved = one.reservedFor(body.id);
    if (reserved !== undefined) throw armErrors.nicReserved(reserved);
    return;
  }
  // A snapshot's only use is an export, which its state tells as a disk's does.
  const { managedBy, managedByExtended, properties } = body as DiskBody;
  const holder = managedBy ?? managedByExtended?.[0];
  if (holder !== undefined) throw armErrors.diskAttached(body.name, holder);
  if (/SAS|Upload/.test(properties.diskState ?? '')) throw armErrors.diskExported(body.name);
}

const ok = (body: object): Answer => ({ status: 200, body: JSON.stringify(body) });
