import type { Answer } from '../http.ts';
import type { Fault } from '../world/faults.ts';
import type { World } from '../world/world.ts';
import { type Casing, cased } from './casing.ts';
import { ArmError } from './errors.ts';
import { groupOf } from './estate.ts';
import { parseQuery } from './kql.ts';
import type { Row } from './kql-values.ts';
import type { Body } from './shapes.ts';
import type { Subscription } from './subscription.ts';

/** The most rows of one answer. */
const MAX_ROWS = 1000;
const WINDOW_MS = 5_000;

interface GraphRequest {
  readonly query?: unknown;
  readonly subscriptions?: readonly string[];
  readonly options?: {
    readonly $top?: number;
    readonly $skip?: number;
    readonly $skipToken?: string;
    readonly resultFormat?: string;
    readonly allowPartialScopes?: boolean;
  };
}

/** Resource Graph over the subscriptions' indexes, which may lag behind ARM ({@link Subscription.graphLagMs}). */
export class ResourceGraph {
  readonly #world: World;
  /** Ids, lower-cased, that it leaves out although they exist: it has been incomplete. */
  readonly hidden = new Set<string>();
  /** Cuts every answer off after so many rows, without a token: `resultTruncated`. */
  truncateAt: number | undefined;
  /** Queries per five seconds; undefined = not counted. */
  quota: number | undefined;
  #window = { fromMs: 0, used: 0 };

  constructor(world: World) {
    this.#world = world;
  }

  /** @throws ArmError */
  answer(body: string, subscriptions: ReadonlyMap<string, Subscription>, fault: Fault | undefined): Answer {
    const headers = this.#spend();
    const { query, subscriptions: named = [], options = {} } = parse(body);
    // A query that names none is about all that the caller may read.
    const asked = named.length > 0 ? named : [...subscriptions.keys()];
    if (typeof query !== 'string') throw new ArmError(400, 'BadRequest', 'The query is missing.');
    if (options.resultFormat !== undefined && options.resultFormat !== 'objectArray') {
      throw new ArmError(400, 'BadRequest', `The result format '${options.resultFormat}' is not simulated.`);
    }
    const rows = parseQuery(query).run([...this.#rows(asked, subscriptions)]);
    const place = options.$skipToken === undefined ? { from: options.$skip ?? 0 } : placeOf(options.$skipToken, query);
    const top = Math.min(options.$top ?? 100, MAX_ROWS);
    const page = rows.slice(place.from, place.from + top);
    const next = place.from + page.length;
    const token = next < rows.length ? { $skipToken: tokenOf(next, query) } : {};
    const whole = { totalRecords: rows.length, count: page.length, data: page, facets: [] };
    // What an answer that is not whole looks like: with its flag, and without any.
    if (this.truncateAt !== undefined && rows.length > this.truncateAt) {
      const cut = page.slice(0, this.truncateAt);
      const truncated = { ...whole, count: cut.length, data: cut, resultTruncated: 'true' };
      return { status: 200, headers, body: JSON.stringify(truncated) };
    }
    if (fault?.kind === 'partial') {
      const half = page.slice(0, Math.floor(page.length / 2));
      const partial = { ...whole, count: half.length, data: half, resultTruncated: 'false' };
      return { status: 200, headers, body: JSON.stringify(partial) };
    }
    return { status: 200, headers, body: JSON.stringify({ ...whole, resultTruncated: 'false', ...token }) };
  }

  *#rows(asked: readonly string[], subscriptions: ReadonlyMap<string, Subscription>): Iterable<Row> {
    for (const id of asked) {
      const subscription = subscriptions.get(id.toLowerCase());
      if (!subscription) throw new ArmError(403, 'Forbidden', `No access to subscription ${id}.`);
      for (const body of subscription.indexed())
        if (!this.hidden.has(body.id.toLowerCase())) yield rowOf(recased(body, subscription.casing), id);
    }
  }

  /** `x-ms-user-quota-*`, as every answer has them, a refusal too. */
  #spend(): Record<string, string> {
    const nowMs = this.#world.clock.now().getTime();
    if (nowMs >= this.#window.fromMs + WINDOW_MS) this.#window = { fromMs: nowMs, used: 0 };
    const quota = this.quota ?? 15;
    const leftS = Math.ceil((this.#window.fromMs + WINDOW_MS - nowMs) / 1000);
    const headers = (remaining: number) => ({
      'x-ms-user-quota-remaining': String(remaining),
      'x-ms-user-quota-resets-after': `00:00:${String(leftS).padStart(2, '0')}`,
    });
    if (this.quota === undefined) return headers(quota);
    if (this.#window.used >= quota) {
      const more = { retryAfterS: leftS, headers: headers(0) };
      throw new ArmError(429, 'RateLimiting', 'Please try again later.', more);
    }
    this.#window.used += 1;
    return headers(quota - this.#window.used);
  }
}

function parse(body: string): GraphRequest {
  try {
    return JSON.parse(body) as GraphRequest;
  } catch {
    throw new ArmError(400, 'InvalidRequestContent', 'The request content was invalid and could not be deserialized.');
  }
}

/** `mixed` differs from resource to resource here, and stays the same over the pages of an answer. */
function recased(body: Body, casing: Casing): Body {
  if (casing === 'kept') return body;
  return JSON.parse(
    cased(JSON.stringify(body), casing, body.id.length + body.id.charCodeAt(body.id.length - 1)),
  ) as Body;
}

/** Resource Graph writes types and group names small. */
function rowOf(body: Body, subscriptionId: string): Row {
  return { ...body, type: body.type.toLowerCase(), resourceGroup: groupOf(body.id), subscriptionId };
}

function tokenOf(from: number, query: string): string {
  return Buffer.from(JSON.stringify({ from, query: query.length })).toString('base64url');
}

function placeOf(token: string, query: string): { from: number } {
  try {
    const place = JSON.parse(Buffer.from(token, 'base64url').toString()) as { from?: number; query?: number };
    if (typeof place.from === 'number' && place.query === query.length) return { from: place.from };
  } catch {
    // Falls through to the refusal: no token of this query.
  }
  throw new ArmError(400, 'BadRequest', 'The $skipToken is not one of this query.');
}
