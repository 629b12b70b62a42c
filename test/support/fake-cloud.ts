import type { Attribution, OwnerAnswer, OwnerRef, Resource, Vm } from '../../shared/core/model.ts';
import {
  type Cloud,
  type CloudScope,
  type ListFilter,
  ownerKey,
  type ReadResult,
  type ResourceId,
  type ResourceType,
  type SnapshotState,
  type VmIdentity,
} from '../../shared/core/ports.ts';

const KINDS = { disk: 'fake-disk', nic: 'fake-nic' } as const;

/**
 * A cloud small enough to hold in the head, for the engine's own rules: state it keeps, failures it is told. The clouds
 * that ship are tested over HTTP against their simulators; this one is nobody's and proves that core knows none of them.
 * A resource's owner is the value of its tag `vm`, by id.
 */
export class FakeCloud implements Cloud {
  readonly name = 'fake';
  readonly resources = new Map<string, Resource>();
  /** What each id names, also of what is gone. */
  readonly #types = new Map<string, string>();
  readonly vms = new Map<string, Vm>();
  readonly calls: Record<string, number> = {};
  readonly deleted: string[] = [];
  readonly snapshots = new Map<string, SnapshotState>();
  readonly snapshotTokens: string[] = [];
  pageSize = 2;
  offersSnapshots = true;
  /** Runs before the named call; throws to fail it. */
  before: (call: string, target?: string) => void | Promise<void> = () => {};

  disk(id: string, over: Partial<Resource> = {}): Resource {
    return this.#put('disk', id, over);
  }

  nic(id: string, over: Partial<Resource> = {}): Resource {
    return this.#put('nic', id, over);
  }

  vm(id: string, attachments: readonly string[] = []): Vm {
    const vm: Vm = {
      id,
      key: `fake:${id}`,
      name: `name-of-${id}`,
      place: 'here',
      tags: { 'kubernetes.io/cluster/shoot': '1' },
      state: 'alive',
      attachments: attachments.map((one) => {
        const resource = this.resources.get(`fake:${one}`) as Resource;
        return { key: resource.key, id: resource.id, kind: resource.kind };
      }),
    };
    this.vms.set(id, vm);
    return vm;
  }

  change(id: string, over: Partial<Resource>): void {
    const resource = this.resources.get(`fake:${id}`) as Resource;
    this.resources.set(resource.key, { ...resource, ...over });
  }

  async open() {
    return { scopes: [this.scope()], skipped: [] };
  }

  parseEvent() {
    return [];
  }

  scope(): CloudScope {
    return {
      cloud: 'fake',
      id: 'fake:here',
      types: [this.#type('nic'), this.#type('disk')],
      owners: {
        lookup: (refs) => this.#lookup(refs),
        read: async ({ id }) => {
          await this.#count('read', id);
          return this.vms.get(id);
        },
      },
      conventions: [{ name: 'fake', attribute: fakeConvention }],
      parseOwnerTag: (value) => (value === '?' ? undefined : { by: 'id', value, place: 'here' }),
      isCandidate: (resource) => Object.keys(resource.tags).length > 0,
      identify: (id) => this.#identify(id),
      calls: { counts: () => this.calls },
      deleteConcurrency: 4,
      recheckBatch: 2,
    };
  }

  #put(kind: 'disk' | 'nic', id: string, over: Partial<Resource>): Resource {
    const resource: Resource = {
      key: `fake:${id}`,
      id,
      cloud: 'fake',
      type: KINDS[kind],
      kind,
      name: id,
      place: 'here',
      tags: { vm: 'vm-1' },
      state: 'free',
      nativeState: 'free',
      attachedTo: [],
      holds: [],
      createdAt: new Date('2026-11-01T00:00:00Z'),
      ...over,
    };
    this.resources.set(resource.key, resource);
    this.#types.set(id, resource.type);
    return resource;
  }

  #identify(id: string): ResourceId | undefined {
    const type = this.#types.get(id);
    return type === undefined ? undefined : { key: `fake:${id}`, id, type };
  }

  async #count(call: string, target?: string): Promise<void> {
    this.calls[call] = (this.calls[call] ?? 0) + 1;
    await this.before(call, target);
  }

  async #lookup(refs: readonly OwnerRef[]): Promise<Map<string, OwnerAnswer>> {
    await this.#count('lookup');
    return new Map(refs.map((ref) => [ownerKey(ref), this.#answer(ref)]));
  }

  #answer(ref: OwnerRef): OwnerAnswer {
    const vm = this.vms.get(ref.value);
    if (!vm) return { state: 'gone', detail: 'absent from a complete answer' };
    return { state: vm.state, detail: vm.state, id: vm.id, name: vm.name, vm };
  }

  #type(kind: 'disk' | 'nic'): ResourceType {
    const ofKind = () => [...this.resources.values()].filter((one) => one.kind === kind);
    const count = (call: string) => this.#count(call);
    const size = () => this.pageSize;
    return {
      name: KINDS[kind],
      kind,
      async *list(_filter: ListFilter) {
        const free = ofKind().filter((one) => one.state === 'free' && Object.keys(one.tags).length > 0);
        for (let start = 0; start < Math.max(1, free.length); start += size()) {
          await count(`list ${kind}`);
          yield free.slice(start, start + size());
        }
      },
      find: async (vm: VmIdentity) => {
        await this.#count(`find ${kind}`);
        return ofKind().filter((one) => one.tags.vm === vm.id || vm.claimed.some(({ key }) => key === one.key));
      },
      get: async (items) => {
        await this.#count(`get ${kind}`);
        return new Map(items.map(({ key }) => [key, this.#read(key)]));
      },
      delete: async (resource, signal) => {
        await this.#count(`delete ${kind}`, resource.id);
        signal.throwIfAborted();
        this.resources.delete(resource.key);
        this.deleted.push(resource.id);
      },
      ...(kind === 'disk' &&
        this.offersSnapshots && { snapshot: (resource: Resource, token: string) => this.#snapshot(resource, token) }),
    };
  }

  #read(key: string): ReadResult {
    const resource = this.resources.get(key);
    return resource ? { status: 'found', resource } : { status: 'gone' };
  }

  async #snapshot(resource: Resource, token: string): Promise<SnapshotState> {
    this.snapshotTokens.push(token);
    await this.#count('snapshot', resource.id);
    const state = this.snapshots.get(resource.id) ?? { id: `snap-of-${resource.id}`, state: 'pending' };
    this.snapshots.set(resource.id, state);
    return state;
  }
}

function fakeConvention(resource: Resource): Attribution[] {
  const value = resource.tags.vm;
  if (value === undefined) return [];
  return [{ ref: { by: 'id', value, place: 'here' }, evidence: 'fake', detail: `tag vm=${value}` }];
}
