import { type Answer, send, serve } from '../http.ts';
import { TokenBucket } from '../world/bucket.ts';
import type { Fault } from '../world/faults.ts';
import { World } from '../world/world.ts';
import { type ArmRequest, type Route, routeOf } from './arm.ts';
import { cased } from './casing.ts';
import { ArmError, armErrors } from './errors.ts';
import { EventFeed } from './events.ts';
import { ResourceGraph } from './graph.ts';
import { Operations } from './operations.ts';
import { Subscription } from './subscription.ts';

export interface AzureSimulatorOptions {
  readonly world?: World;
  /** 0 = any free one. */
  readonly port?: number;
  readonly subscriptions?: readonly string[];
}

export interface AzureSimulator {
  readonly url: string;
  readonly world: World;
  /** Scenario control; without an id the first. */
  subscription(id?: string): Subscription;
  readonly graph: ResourceGraph;
  readonly events: EventFeed;
  /** Every answer with a body that was given, with its action: to be held against the API's models. */
  readonly answers: { action: string; status: number; body: string }[];
  /** ARM's documented buckets (deletes and writes 200 + 10/s each, reads 250 + 25/s) and Resource Graph's 15 queries in 5 s. */
  throttle(): void;
  close(): Promise<void>;
}

export const SUBSCRIPTION = '11111111-2222-3333-4444-555555555555';
const MAX_ANSWERS = 2000;
const GRAPH_PATH = '/providers/microsoft.resourcegraph/resources';
const GRAPH_ACTION = 'Microsoft.ResourceGraph/resources/read';

/** Azure Resource Manager and Resource Graph on loopback. */
export async function startAzureSimulator(options: AzureSimulatorOptions = {}): Promise<AzureSimulator> {
  const world = options.world ?? new World();
  const ids = options.subscriptions ?? [SUBSCRIPTION];
  const events = new EventFeed(world);
  const subscriptions = new Map(
    ids.map((id) => [id.toLowerCase(), new Subscription(id, world, (change) => events.emit(change))]),
  );
  const graph = new ResourceGraph(world);
  const face = new Face(world, subscriptions, graph);
  const answers: AzureSimulator['answers'] = [];

  const server = await serve(options.port ?? 0, async (incoming, body, response) => {
    const url = new URL(incoming.url ?? '/', `http://${incoming.headers.host}`);
    const { method = 'GET' } = incoming;
    const request: ArmRequest = {
      method,
      path: decodeURIComponent(url.pathname),
      query: url.searchParams,
      origin: url.origin,
      body,
    };
    world.now();
    const { answer, action, fault } = face.answer(request);
    const write = method === 'DELETE' || method === 'PUT' || method === 'PATCH';
    world.log({
      cloud: 'azure',
      operation: action,
      write,
      target: request.path,
      status: answer.status,
      ...codeOf(answer),
    });
    if (answer.body !== '' && answers.length < MAX_ANSWERS)
      answers.push({ action, status: answer.status, body: answer.body });
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'x-ms-request-id': crypto.randomUUID(),
      ...answer.headers,
    };
    await send(response, { ...answer, headers }, world.latencyMs, fault);
  });

  return {
    url: server.url,
    world,
    graph,
    events,
    answers,
    subscription: (id = ids[0] ?? '') => {
      const subscription = subscriptions.get(id.toLowerCase());
      if (!subscription) throw new Error(`no simulated subscription ${id}`);
      return subscription;
    },
    throttle: () => {
      face.throttle();
      graph.quota = 15;
    },
    close: server.close,
  };
}

interface Answered {
  readonly answer: Answer;
  readonly action: string;
  readonly fault: Fault | undefined;
}

class Face {
  readonly #world: World;
  readonly #subscriptions: ReadonlyMap<string, Subscription>;
  readonly #graph: ResourceGraph;
  readonly #operations: Operations;
  /** By subscription and kind of request. */
  readonly #buckets = new Map<string, TokenBucket>();
  #serial = 0;

  constructor(world: World, subscriptions: ReadonlyMap<string, Subscription>, graph: ResourceGraph) {
    this.#world = world;
    this.#subscriptions = subscriptions;
    this.#graph = graph;
    this.#operations = new Operations(world);
  }

  throttle(): void {
    for (const id of this.#subscriptions.keys()) {
      for (const kind of ['deletes', 'writes'])
        this.#buckets.set(`${id} ${kind}`, new TokenBucket(200, 10, this.#world.clock.now()));
      this.#buckets.set(`${id} reads`, new TokenBucket(250, 25, this.#world.clock.now()));
    }
  }

  answer(request: ArmRequest): Answered {
    let action = `${request.method} ${request.path}`;
    let fault: Fault | undefined;
    try {
      if (!request.query.has('api-version')) throw armErrors.missingApiVersion();
      const isGraph = request.path.toLowerCase() === GRAPH_PATH;
      const route = isGraph ? undefined : routeOf(request, this.#operations);
      action = route?.action ?? GRAPH_ACTION;
      fault = this.#world.faults.take(action, request.path);
      if (fault?.kind === 'error') {
        const { status, code, message, retryAfterS } = fault;
        throw new ArmError(status, code, message, retryAfterS === undefined ? {} : { retryAfterS });
      }
      if (!route) return { answer: this.#graph.answer(request.body, this.#subscriptions, fault), action, fault };
      const answer = this.#arm(route, request);
      return { answer: fault?.kind === 'partial' ? halved(answer) : answer, action, fault };
    } catch (error) {
      if (!(error instanceof ArmError)) throw error;
      return { answer: error.toAnswer(), action, fault };
    }
  }

  #arm(route: Route, { method, path }: ArmRequest): Answer {
    const subscription = this.#subscriptions.get(route.subscription.toLowerCase());
    if (!subscription) throw armErrors.subscriptionNotFound(route.subscription);
    const kind = method === 'DELETE' ? 'deletes' : method === 'PUT' ? 'writes' : 'reads';
    const bucket = this.#buckets.get(`${subscription.id.toLowerCase()} ${kind}`);
    if (bucket?.take(this.#world.clock.now()) === false) throw armErrors.throttled(kind === 'reads' ? 2 : 1);
    if (subscription.denied.has(route.action)) throw armErrors.authorizationFailed(route.action, path);
    if (method === 'DELETE') guardDelete(subscription, route.action, path);
    if (method === 'PUT') guardWrite(subscription, path);
    if (kind !== 'reads' && subscription.state === 'Disabled') throw armErrors.disabled(subscription.id);
    const answer = route.answer(subscription);
    this.#serial += 1;
    const left = bucket && { [`x-ms-ratelimit-remaining-subscription-${kind}`]: String(Math.floor(bucket.tokens)) };
    const headers = { ...answer.headers, ...left };
    return { ...answer, headers, body: cased(answer.body, subscription.casing, this.#serial) };
  }
}

/** Locks and deny assignments of the scope itself and of all above it; a group's deletion meets those below it too. */
function guardDelete(subscription: Subscription, action: string, path: string): void {
  const scope = path.toLowerCase();
  const isAbove = (at: string) => `${scope}/`.startsWith(`${at}/`);
  const isBelow = (at: string) => at.startsWith(`${scope}/`);
  const deniedAt = [...subscription.denyAssignments].find(isAbove);
  if (deniedAt !== undefined) throw armErrors.denied(action, path, deniedAt);
  const locked = [...subscription.locks.keys()].filter((at) => isAbove(at) || isBelow(at));
  if (locked.length > 0) throw armErrors.scopeLocked('delete', path, locked);
}

/** Only a read-only lock forbids writing. */
function guardWrite(subscription: Subscription, path: string): void {
  const scope = `${path.toLowerCase()}/`;
  const locks = [...subscription.locks].filter(([at, level]) => level === 'ReadOnly' && scope.startsWith(`${at}/`));
  if (locks.length === 0) return;
  throw armErrors.scopeLocked(
    'write',
    path,
    locks.map(([at]) => at),
  );
}

/** A list without its second half and its link to more; a body without its properties. */
function halved(answer: Answer): Answer {
  if (answer.body === '') return answer;
  const { nextLink: _, properties: __, ...body } = JSON.parse(answer.body) as Record<string, unknown>;
  const { value } = body;
  const half = Array.isArray(value) ? { value: value.slice(0, Math.floor(value.length / 2)) } : {};
  return { ...answer, body: JSON.stringify({ ...body, ...half }) };
}

function codeOf({ status, body }: Answer): { code?: string } {
  if (status < 400 || !body.startsWith('{')) return {};
  const { error } = JSON.parse(body) as { error?: { code?: string } };
  return error?.code === undefined ? {} : { code: error.code };
}
