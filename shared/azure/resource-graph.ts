import type { QueryResponse } from '@azure/arm-resourcegraph';
import type { ListFilter } from '../core/ports.ts';
import { DISK_TYPE, NIC_TYPE, parseArmId } from './arm-id.ts';
import type { ArmClients } from './clients.ts';
import { malformed, toCloudError } from './errors.ts';
import { CANDIDATE_TAG_KEYS } from './tags.ts';

const OPERATION = 'ResourceGraph_Resources';
/** The most that Resource Graph gives at once. */
const PAGE = 1000;
/** Ids of other types and subscriptions that one shared query may keep in memory; about 250 bytes each. */
const SHARED_MAX = 20_000;

/**
 * Candidates by Resource Graph. It is eventually consistent and has been incomplete, so it names ids and nothing else;
 * what it leaves out is found by a later sweep, what it adds is dropped by the ARM read. One query serves all
 * subscriptions and types of a run, while they are few; beyond that each type of each subscription streams its own.
 */
export class GraphCandidates {
  readonly #subscriptions: readonly string[];
  #shared: { readonly key: string; readonly result: Promise<Shared>; readonly taken: Set<string> } | undefined;
  #notBeforeMs = 0;

  constructor(subscriptions: readonly string[]) {
    this.#subscriptions = subscriptions;
  }

  /** Ids of one type in the clients' subscription, page by page. @throws CloudError when the answer was not whole */
  async *ids(
    clients: ArmClients,
    armType: string,
    filter: ListFilter,
    signal: AbortSignal,
  ): AsyncGenerator<readonly string[]> {
    const mine = slot(clients.subscription, armType);
    const key = JSON.stringify([filter.cluster ?? null, filter.kinds ?? null, filter.ownerTags]);
    // A listing that is asked for again asks the cloud again.
    if (!this.#shared || this.#shared.key !== key || this.#shared.taken.has(mine)) {
      this.#shared = { key, result: this.#queryAll(clients, filter, signal), taken: new Set() };
    }
    const { result, taken } = this.#shared;
    taken.add(mine);
    const shared = await result;
    if (shared !== 'too many') {
      const ids = shared.get(mine);
      shared.delete(mine);
      if (ids) yield ids;
      return;
    }
    const query = candidateQuery([armType], filter);
    for await (const { ids } of this.#pages(clients, [clients.subscription], query, signal)) {
      yield ids.filter((id) => slotOf(id) === mine);
    }
  }

  async #queryAll(clients: ArmClients, filter: ListFilter, signal: AbortSignal): Promise<Shared> {
    const types = [
      ...(filter.kinds?.includes('nic') === false ? [] : [NIC_TYPE]),
      ...(filter.kinds?.includes('disk') === false ? [] : [DISK_TYPE]),
    ];
    const found = new Map<string, string[]>();
    for await (const { ids, total } of this.#pages(
      clients,
      this.#subscriptions,
      candidateQuery(types, filter),
      signal,
    )) {
      if (total > SHARED_MAX) return 'too many';
      for (const id of ids) {
        const at = slotOf(id);
        const list = found.get(at);
        if (list) list.push(id);
        else found.set(at, [id]);
      }
    }
    return found;
  }

  async *#pages(
    clients: ArmClients,
    subscriptions: readonly string[],
    query: string,
    signal: AbortSignal,
  ): AsyncGenerator<Page> {
    let skipToken: string | undefined;
    let seen = 0;
    do {
      const answer = await this.#ask(clients, subscriptions, query, skipToken, signal);
      const ids = idsOf(answer);
      seen += ids.length;
      if (answer.skipToken !== undefined && answer.skipToken === skipToken)
        throw malformed(OPERATION, 'the same page twice');
      skipToken = answer.skipToken || undefined;
      // Truncated beside a token means 'more to come', without one 'cut off'.
      if (skipToken === undefined && answer.resultTruncated === 'true')
        throw malformed(OPERATION, 'the answer was truncated', 'ResultTruncated');
      if (skipToken === undefined && seen < answer.totalRecords) {
        throw malformed(OPERATION, `${seen} of ${answer.totalRecords} records, and no further page`, 'MissingPage');
      }
      if (ids.length === 0 && skipToken !== undefined)
        throw malformed(OPERATION, 'an empty page with a further one', 'MissingPage');
      yield { ids, total: answer.totalRecords };
    } while (skipToken !== undefined);
  }

  async #ask(
    clients: ArmClients,
    subscriptions: readonly string[],
    query: string,
    skipToken: string | undefined,
    signal: AbortSignal,
  ) {
    try {
      const waitMs = this.#notBeforeMs - clients.clock.now().getTime();
      if (waitMs > 0) await clients.clock.sleep(waitMs, signal);
      const client = await clients.graph();
      return await client.resources(
        {
          subscriptions: [...subscriptions],
          query,
          options: { top: PAGE, skipToken, resultFormat: 'objectArray', allowPartialScopes: false },
        },
        { abortSignal: signal, onResponse: ({ headers }) => this.#obeyQuota(headers, clients) },
      );
    } catch (error) {
      throw toCloudError(error, OPERATION, signal);
    }
  }

  /** `x-ms-user-quota-remaining: 0` with `x-ms-user-quota-resets-after: hh:mm:ss`: the next query waits that long. */
  #obeyQuota(headers: { get(name: string): string | undefined }, { clock }: ArmClients): void {
    const remaining = headers.get('x-ms-user-quota-remaining');
    if (remaining === undefined || Number(remaining) > 0) return;
    const parts = /^(\d+):(\d+):(\d+(?:\.\d+)?)$/.exec(headers.get('x-ms-user-quota-resets-after') ?? '');
    const seconds = parts ? Number(parts[1]) * 3600 + Number(parts[2]) * 60 + Number(parts[3]) : 5;
    this.#notBeforeMs = clock.now().getTime() + seconds * 1000;
  }
}

type Shared = Map<string, string[]> | 'too many';

interface Page {
  readonly ids: readonly string[];
  readonly total: number;
}

function idsOf(answer: QueryResponse): string[] {
  const rows: unknown = answer.data;
  if (!Array.isArray(rows) || typeof answer.totalRecords !== 'number')
    throw malformed(OPERATION, 'an answer without its rows');
  if (typeof answer.count === 'number' && answer.count !== rows.length) {
    throw malformed(OPERATION, `${answer.count} rows announced, ${rows.length} sent`, 'MissingRows');
  }
  return rows.map((row: unknown) => {
    const id = (row as { id?: unknown } | null)?.id;
    if (typeof id !== 'string' || !parseArmId(id)) throw malformed(OPERATION, 'a row without the id of a resource');
    return id;
  });
}

const slot = (subscription: string, armType: string) => `${subscription.toLowerCase()} ${armType}`;

function slotOf(id: string): string {
  const parsed = parseArmId(id);
  return parsed ? slot(parsed.subscription, parsed.type) : '';
}

/** What is free, as far as an index can say: the rest of 'free' is read from ARM. */
const FREE: Readonly<Record<string, string>> = {
  [DISK_TYPE]: `(type =~ '${DISK_TYPE}' and tostring(properties.diskState) =~ 'Unattached')`,
  [NIC_TYPE]: `(type =~ '${NIC_TYPE}' and isempty(tostring(properties.virtualMachine)))`,
};

/**
 * The query. Resource Graph is not all of Kusto: dynamic values are cast before they are compared, tag keys are matched
 * in the text of the tags (`contains` ignores case, as Azure's tag keys do), and only with `order by id` do pages fit together.
 */
export function candidateQuery(armTypes: readonly string[], filter: Pick<ListFilter, 'cluster' | 'ownerTags'>): string {
  const tags = [...CANDIDATE_TAG_KEYS, ...filter.ownerTags].map((key) => `tostring(tags) contains ${literal(key)}`);
  return [
    'resources',
    `| where ${armTypes.map((type) => FREE[type]).join(' or ')}`,
    `| where ${tags.join(' or ')}`,
    ...(filter.cluster === undefined ? [] : [`| where tostring(tags) contains ${literal(filter.cluster)}`]),
    '| project id',
    '| order by id asc',
  ].join('\n');
}

/** A KQL string literal. */
function literal(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
