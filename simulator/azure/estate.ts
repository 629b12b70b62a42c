import type { World } from '../world/world.ts';
import { type Body, type DiskBody, type Kind, LOCATION, type NicBody, TYPES, type VmBody } from './shapes.ts';

/** What lies in a subscription, by its groups, and what Resource Graph knows of it. Bodies are kept as ARM would answer them. */
export class Estate {
  readonly id: string;
  readonly world: World;
  /** How long Resource Graph takes to notice a change. */
  graphLagMs = 0;
  readonly #groups = new Map<string, string>();
  readonly #resources = new Map<string, Body>();
  readonly #indexed = new Map<string, Body>();
  /** Which change of each resource Resource Graph has noticed: a late one never undoes a later one. */
  readonly #noticed = new Map<string, number>();
  #changes = 0;
  #serial = 0;

  constructor(id: string, world: World) {
    this.id = id;
    this.world = world;
  }

  createGroup(name: string): string {
    this.#groups.set(name.toLowerCase(), name);
    return this.groupId(name);
  }

  groupId(name: string): string {
    return `/subscriptions/${this.id}/resourceGroups/${name}`;
  }

  /** The name as it was made; undefined = there is none. */
  groupNamed(name: string): string | undefined {
    return this.#groups.get(name.toLowerCase());
  }

  removeGroup(name: string): void {
    for (const one of this.all()) if (groupOf(one.id) === name.toLowerCase()) this.remove(one.id);
    this.#groups.delete(name.toLowerCase());
  }

  get(id: string): Body | undefined {
    return this.#resources.get(id.toLowerCase());
  }

  disk(id: string): DiskBody {
    return this.need(id) as DiskBody;
  }

  nic(id: string): NicBody {
    return this.need(id) as NicBody;
  }

  vm(id: string): VmBody {
    return this.need(id) as VmBody;
  }

  /** In the order of creation. */
  *all(kind?: Kind): Iterable<Body> {
    for (const body of this.#resources.values()) if (kind === undefined || body.type === TYPES[kind]) yield body;
  }

  /** As Resource Graph knows it. */
  indexed(): Iterable<Body> {
    return this.#indexed.values();
  }

  names(): string[] {
    return [...this.all()].map(({ name }) => name).sort();
  }

  put(body: Body): string {
    this.#resources.set(body.id.toLowerCase(), body);
    this.#index(body.id, body);
    return body.id;
  }

  remove(id: string): void {
    this.#resources.delete(id.toLowerCase());
    this.#index(id, undefined);
  }

  #index(id: string, body: Body | undefined): void {
    const key = id.toLowerCase();
    this.#changes += 1;
    const change = this.#changes;
    this.later(this.graphLagMs, () => {
      if (change < (this.#noticed.get(key) ?? 0)) return;
      this.#noticed.set(key, change);
      if (body) this.#indexed.set(key, body);
      else this.#indexed.delete(key);
    });
  }

  protected later(ms: number, run: () => void): void {
    if (ms === 0) run();
    else this.world.at(new Date(this.world.clock.now().getTime() + ms), run);
  }

  protected tracked(kind: Kind, group: string, name: string) {
    if (!this.groupNamed(group)) this.createGroup(group);
    return {
      id: `${this.groupId(group)}/providers/${TYPES[kind]}/${name}`,
      name,
      type: TYPES[kind],
      location: LOCATION,
    };
  }

  protected need(id: string): Body {
    const body = this.get(id);
    if (!body) throw new Error(`no ${id}`);
    return body;
  }

  uniqueId(): string {
    this.#serial += 1;
    return `9a000000-0000-4000-8000-${String(this.#serial).padStart(12, '0')}`;
  }
}

export function groupOf(id: string): string {
  return /\/resourcegroups\/([^/]+)/i.exec(id)?.[1]?.toLowerCase() ?? '';
}
