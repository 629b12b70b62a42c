import type { Pipeline } from '@azure/core-rest-pipeline';
import pMap from 'p-map';
import { chunks } from '../core/chunks.ts';
import type { CloudError } from '../core/errors.ts';
import type { Kind, Resource } from '../core/model.ts';
import type { ListFilter, ReadResult, ResourceType, VmIdentity } from '../core/ports.ts';
import { belongsToCluster } from '../core/protections.ts';
import { type ArmId, parseArmId, parseArmIdOf, VM_TYPE } from './arm-id.ts';
import type { ArmClients } from './clients.ts';
import { conventions } from './conventions.ts';
import { isGone, malformed, toCloudError } from './errors.ts';
import { deleteAndWait, type FirstAnswer } from './lro.ts';
import type { GraphCandidates } from './resource-graph.ts';
import { isCandidate } from './tags.ts';

/** Reads at the same time; ARM's rate is kept by the pacer, this only bounds open connections. */
const READ_CONCURRENCY = 32;
/** Candidates that are confirmed and handed on at once. */
const CONFIRM_PAGE = 1000;
/** So many candidates of one group are looked for in its list first: a few pages instead of a read for each. */
const LIST_FROM = 50;
/** A group that is much larger than its leftovers is not read to its end: a page has to confirm at least so many on average. */
const WORTH_A_PAGE = 10;

type Sent = { readonly abortSignal: AbortSignal; readonly onResponse?: (answer: FirstAnswer) => void };

/** What one resource type adds to the common way over ARM. */
export interface ArmTypeSpec<T> {
  readonly name: string;
  readonly kind: Kind;
  /** Lower-cased ARM type. */
  readonly armType: string;
  /** The API's operation group: `Disks`. */
  readonly group: string;
  client(): Promise<{ readonly pipeline: Pipeline }>;
  pages(resourceGroup: string, options: Sent): Promise<AsyncIterable<readonly T[]>>;
  read(id: ArmId, options: Sent): Promise<T>;
  /**
   * Starts the deletion; its first answer goes to `onResponse`. Returned as a function, since the SDK's poller is a
   * thenable that would itself poll to the end when awaited.
   */
  remove(id: ArmId, options: Sent): Promise<() => Promise<void>>;
  idOf(native: T): string | undefined;
  toResource(native: T, id: ArmId): Resource;
}

export interface ArmTypeContext {
  readonly clients: ArmClients;
  readonly graph: GraphCandidates;
  /** Lower-cased `<subscription>/<resource group>` of the request, where it names a group: VM names are looked up there. */
  readonly place?: string;
}

/**
 * A {@link ResourceType} over ARM: facts come from ARM reads only, Resource Graph does no more than name candidates.
 * Locks are not read: a resource inherits them from its group and its subscription, which would cost further calls for
 * each, and ARM itself refuses the delete (`ScopeLocked`, mapped to `locked`), atomically and also for a lock set a moment ago.
 */
export function armType<T>(spec: ArmTypeSpec<T>, context: ArmTypeContext): ResourceType {
  const reader = new Reader(spec, context.clients);
  return {
    name: spec.name,
    kind: spec.kind,
    async *list(filter, signal) {
      if (filter.kinds && !filter.kinds.includes(spec.kind)) return;
      const wanted = (resource: Resource) => isLeftover(resource, filter);
      if (filter.resourceGroup !== undefined) {
        for await (const page of reader.group(filter.resourceGroup, signal)) yield page.filter(wanted);
        return;
      }
      for await (const page of confirmed(spec, context, reader, filter, signal)) yield page.filter(wanted);
    },
    find: (vm, signal) => find(reader, context, vm, signal),
    get: async (resources, signal) => {
      const read = async ({ key, id }: Pick<Resource, 'key' | 'id'>) => [key, await reader.get(id, signal)] as const;
      return new Map(await pMap(resources, read, { concurrency: READ_CONCURRENCY }));
    },
    delete: (resource, signal) => remove(spec, context.clients, resource, signal),
  };
}

/**
 * Tagged, and on no VM. What something else uses (an export by SAS, a private endpoint) is listed too: the judge keeps
 * it, and says why.
 */
function isLeftover(resource: Resource, filter: ListFilter): boolean {
  if (resource.attachedTo.length > 0 || !isCandidate(resource, filter.ownerTags)) return false;
  return filter.cluster === undefined || belongsToCluster(resource, [filter.cluster]);
}

/** Candidates by Resource Graph, each confirmed by an ARM read. What could not be read makes the listing incomplete, at its end. */
async function* confirmed<T>(
  spec: ArmTypeSpec<T>,
  { clients, graph }: ArmTypeContext,
  reader: Reader<T>,
  filter: ListFilter,
  signal: AbortSignal,
): AsyncGenerator<Resource[]> {
  let failure: Error | undefined;
  for await (const ids of graph.ids(clients, spec.armType, filter, signal)) {
    for (const page of chunks(ids, CONFIRM_PAGE)) {
      const results = await reader.confirm(page, signal);
      yield results.flatMap((result) => {
        if (result.status === 'failed') failure ??= result.error;
        return result.status === 'found' ? [result.resource] : [];
      });
      if (signal.aborted) throw toCloudError(signal.reason, `${spec.group}_Get`, signal);
    }
  }
  if (failure) throw failure;
}

/**
 * What a VM left: its group's resources of this type that a claim, a convention or a tag connects with it, by one list,
 * so that an event costs the same few calls however many leftovers there are; and claimed ones in other groups by exact reads.
 */
async function find<T>(
  reader: Reader<T>,
  context: ArmTypeContext,
  vm: VmIdentity,
  signal: AbortSignal,
): Promise<Resource[]> {
  const id = parseArmIdOf(VM_TYPE, vm.id);
  const place = id?.place ?? (vm.place || context.place);
  // An id says its name itself; what a person gave as a name may be the id again.
  const name = (id?.name ?? vm.name ?? vm.id).toLowerCase();
  const claimed = new Map(vm.claimed.map((one) => [one.key, one.id]));
  const names = new Set([name, vm.id.toLowerCase()]);
  const isItsOwn = (resource: Resource) =>
    claimed.has(resource.key) ||
    conventions.some((convention) =>
      convention.attribute(resource).some(({ ref }) => ref.place === place && ref.value.toLowerCase() === name),
    ) ||
    Object.values(resource.tags).some((value) => names.has(value.toLowerCase()));
  const found = new Map<string, Resource>();
  const group = place?.split('/')[1];
  if (group) {
    try {
      for await (const page of reader.group(group, signal)) {
        for (const resource of page) if (isItsOwn(resource)) found.set(resource.key, resource);
      }
    } catch (error) {
      // The group is gone, and all that was in it.
      const failure = toCloudError(error, `${reader.spec.group}_ListByResourceGroup`, signal);
      if (!isGone(failure)) throw failure;
    }
  }
  const elsewhere = [...claimed.values()].filter((one) => reader.owns(one) && parseArmId(one)?.place !== place);
  for (const result of await pMap(elsewhere, (one) => reader.get(one, signal), { concurrency: READ_CONCURRENCY })) {
    if (result.status === 'failed') throw result.error;
    if (result.status === 'found') found.set(result.resource.key, result.resource);
  }
  return [...found.values()];
}

async function remove<T>(
  spec: ArmTypeSpec<T>,
  clients: ArmClients,
  resource: Resource,
  signal: AbortSignal,
): Promise<void> {
  const operation = `${spec.group}_Delete`;
  const id = parseArmIdOf(spec.armType, resource.id);
  if (!id || id.subscription.toLowerCase() !== clients.subscription)
    throw malformed(operation, `not an id of this scope: ${resource.id}`, 'InvalidId');
  const client = await spec.client();
  const start = async (): Promise<FirstAnswer> => {
    let answer: FirstAnswer | undefined;
    const onResponse = (response: FirstAnswer) => {
      answer ??= response;
    };
    const submitted = await spec.remove(id, { abortSignal: signal, onResponse });
    await submitted();
    if (!answer) throw malformed(operation, 'no answer');
    return answer;
  };
  await deleteAndWait(
    { operation, clients, client, start, read: () => spec.read(id, { abortSignal: signal }) },
    signal,
  );
}

class Reader<T> {
  readonly spec: ArmTypeSpec<T>;
  readonly #clients: ArmClients;

  constructor(spec: ArmTypeSpec<T>, clients: ArmClients) {
    this.spec = spec;
    this.#clients = clients;
  }

  /** Whether an id is one of this type in this subscription. */
  owns(id: string): boolean {
    return parseArmIdOf(this.spec.armType, id)?.subscription.toLowerCase() === this.#clients.subscription;
  }

  /** All of a group, strongly consistent, a page at a time. @throws CloudError */
  async *group(resourceGroup: string, signal: AbortSignal): AsyncGenerator<Resource[]> {
    const operation = `${this.spec.group}_ListByResourceGroup`;
    try {
      for await (const page of await this.spec.pages(resourceGroup, { abortSignal: signal })) {
        signal.throwIfAborted();
        yield page.map((native) => this.#resource(native, operation));
      }
    } catch (error) {
      throw toCloudError(error, operation, signal);
    }
  }

  /**
   * First looks at many: where a group has many of them they are found in its list, which is as consistent as reads are;
   * whatever the list does not show, and everything else, is read by itself. Right before a deletion only {@link get} counts.
   */
  async confirm(ids: readonly string[], signal: AbortSignal): Promise<ReadResult[]> {
    const found = new Map<string, Resource>();
    const byGroup = Map.groupBy(ids, (id) =>
      this.owns(id) ? (parseArmIdOf(this.spec.armType, id)?.place.split('/')[1] ?? '') : '',
    );
    for (const [group, members] of byGroup) {
      if (group === '' || members.length < LIST_FROM) continue;
      for (const resource of await this.#listed(group, members.length / WORTH_A_PAGE, signal))
        found.set(resource.key, resource);
    }
    const one = async (id: string): Promise<ReadResult> => {
      const resource = found.get(parseArmIdOf(this.spec.armType, id)?.key ?? '');
      return resource ? { status: 'found', resource } : this.get(id, signal);
    };
    return pMap(ids, one, { concurrency: READ_CONCURRENCY });
  }

  /** What the first pages of a group show; a list that fails shows nothing, and the reads by id say what is the matter. */
  async #listed(group: string, maxPages: number, signal: AbortSignal): Promise<Resource[]> {
    const shown: Resource[] = [];
    let pages = 0;
    try {
      for await (const page of this.group(group, signal)) {
        shown.push(...page);
        pages += 1;
        if (pages >= maxPages) break;
      }
      return shown;
    } catch (error) {
      if (signal.aborted) throw error;
      return [];
    }
  }

  async get(id: string, signal: AbortSignal): Promise<ReadResult> {
    const operation = `${this.spec.group}_Get`;
    const parsed = parseArmIdOf(this.spec.armType, id);
    if (!parsed || !this.owns(id))
      return { status: 'failed', error: malformed(operation, `not an id of this scope: ${id}`, 'InvalidId') };
    try {
      const resource = this.#resource(await this.spec.read(parsed, { abortSignal: signal }), operation);
      if (resource.key === parsed.key) return { status: 'found', resource };
      return { status: 'failed', error: malformed(operation, `asked for ${id}, answered ${resource.id}`) };
    } catch (cause) {
      const error: CloudError = toCloudError(cause, operation, signal);
      return isGone(error) ? { status: 'gone' } : { status: 'failed', error };
    }
  }

  #resource(native: T, operation: string): Resource {
    const text = native === undefined || native === null ? undefined : this.spec.idOf(native);
    const id = text === undefined ? undefined : parseArmIdOf(this.spec.armType, text);
    if (!id) throw malformed(operation, `an answer without the id of a ${this.spec.name}`);
    return this.spec.toResource(native, id);
  }
}
