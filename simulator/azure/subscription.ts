import type { World } from '../world/world.ts';
import type { Casing } from './casing.ts';
import { Estate } from './estate.ts';
import type { VmChange } from './events.ts';
import { type MadeVm, partsOf, profilesOf, type VmSpec } from './machines.ts';
import type { Pace } from './operations.ts';
import { armTime, type DiskBody, type DiskWire, mcmTags, type NicBody, type NicWire, type VmBody } from './shapes.ts';

/** For so long Azure keeps a NIC for the VM that it was on, or that could not be made. */
const RESERVED_MS = 180_000;

/** One subscription's estate, and what people, controllers and time do to it. Bodies are kept as ARM would answer them. */
export class Subscription extends Estate {
  casing: Casing = 'kept';
  state: 'Enabled' | 'Disabled' | 'Warned' = 'Enabled';
  /** ARM's page size of lists. */
  pageSize = 1000;
  readonly pace: Readonly<Record<'disk' | 'nic' | 'group', Pace>> = {
    disk: { deletionMs: 2_000, retryAfterS: 2 },
    nic: { deletionMs: 10_000, retryAfterS: 10 },
    group: { deletionMs: 30_000, retryAfterS: 15 },
  };
  /** Actions that no role grants: `AuthorizationFailed`. */
  readonly denied = new Set<string>();
  /** Lower-cased scopes with a lock, or with a deny assignment on deletes. */
  readonly locks = new Map<string, 'CanNotDelete' | 'ReadOnly'>();
  readonly denyAssignments = new Set<string>();
  /** How a deletion ends that was accepted, by lower-cased id. */
  readonly failAtEnd = new Map<string, { code: string; message: string }>();
  readonly #reserved = new Map<string, { vm: string; untilMs: number }>();
  readonly #emit: (change: VmChange) => void;

  constructor(id: string, world: World, emit: (change: VmChange) => void) {
    super(id, world);
    this.#emit = emit;
  }

  createDisk(
    name: string,
    spec: { group?: string; tags?: Record<string, string>; sizeGB?: number; properties?: Partial<DiskWire> } = {},
  ): string {
    const { group = 'shoot--one', tags = mcmTags(group.toLowerCase()), sizeGB = 64, properties } = spec;
    const body: DiskBody = {
      ...this.tracked('disk', group, name),
      tags,
      sku: { name: 'Premium_LRS', tier: 'Premium' },
      properties: {
        osType: 'Linux',
        creationData: { createOption: 'Empty' },
        diskSizeGB: sizeGB,
        diskState: 'Unattached',
        provisioningState: 'Succeeded',
        timeCreated: armTime(this.world.now()),
        uniqueId: this.uniqueId(),
        ...properties,
      },
    };
    return this.put(body);
  }

  createNic(
    name: string,
    spec: { group?: string; tags?: Record<string, string>; vnetGroup?: string; properties?: Partial<NicWire> } = {},
  ): string {
    const { group = 'shoot--one', tags = mcmTags(group.toLowerCase()), vnetGroup = group, properties } = spec;
    const subnet = `${this.groupId(vnetGroup)}/providers/Microsoft.Network/virtualNetworks/nodes/subnets/nodes`;
    const body: NicBody = {
      ...this.tracked('nic', group, name),
      etag: `W/"${this.uniqueId()}"`,
      tags,
      properties: {
        provisioningState: 'Succeeded',
        resourceGuid: this.uniqueId(),
        ipConfigurations: [
          { name: 'ipconfig', properties: { primary: true, privateIPAddress: '10.250.0.4', subnet: { id: subnet } } },
        ],
        nicType: 'Standard',
        enableAcceleratedNetworking: false,
        ...properties,
      },
    };
    return this.put(body);
  }

  /** What a service's NIC looks like that carries a node's tags all the same. */
  createPrivateEndpointNic(name: string, spec: { group?: string } = {}): string {
    const endpoint = `${this.groupId(spec.group ?? 'shoot--one')}/providers/Microsoft.Network/privateEndpoints/${name}-pe`;
    return this.createNic(name, { ...spec, properties: { privateEndpoint: { id: endpoint } } });
  }

  /** A machine as its controller makes it: NIC, then VM with its OS disk and data disks. */
  createVm(name: string, spec: VmSpec = {}): MadeVm {
    const { group = 'shoot--one', cluster = group.toLowerCase(), cascade = false, style = 'mcm' } = spec;
    const { dataDisks = style === 'karpenter' ? 0 : 1 } = spec;
    const parts = partsOf(style, name, cluster);
    const { tags } = parts;
    const nic = this.createNic(parts.nic, { group, tags });
    const os = this.createDisk(parts.osDisk, {
      group,
      tags,
      properties: { creationData: { createOption: 'FromImage' } },
    });
    const data = Array.from({ length: dataDisks }, (_, lun) => this.createDisk(parts.dataDisk(lun), { group, tags }));
    const body: VmBody = {
      ...this.tracked('vm', group, name),
      tags,
      properties: {
        vmId: this.uniqueId(),
        timeCreated: armTime(this.world.now()),
        provisioningState: 'Succeeded',
        ...profilesOf(nic, os, data, cascade),
      },
    };
    this.put(body);
    for (const id of [os, ...data]) this.#hold(id, body.id);
    this.put({ ...this.nic(nic), properties: { ...this.nic(nic).properties, virtualMachine: { id: body.id } } });
    this.#emit({ subscription: this.id, vmId: body.id, change: 'write', time: this.world.clock.now() });
    return { vm: body.id, nic, disks: [os, ...data] };
  }

  /** A machine whose VM could not be made: its NIC was made before, and is reserved. A failed write tells nobody. */
  failVm(name: string, spec: Pick<VmSpec, 'group' | 'cluster' | 'style'> = {}): MadeVm {
    const { group = 'shoot--one', cluster = group.toLowerCase(), style = 'mcm' } = spec;
    const parts = partsOf(style, name, cluster);
    const nic = this.createNic(parts.nic, { group, tags: parts.tags });
    const vm = this.tracked('vm', group, name).id;
    this.reserve(nic, vm);
    return { vm, nic, disks: [] };
  }

  /** Stops a VM without giving up what it has: its disks read `Reserved`. */
  deallocateVm(id: string): void {
    this.#changeDisksOf(id, 'Reserved');
  }

  startVm(id: string): void {
    this.#changeDisksOf(id, 'Attached');
  }

  /** What its delete options name goes along; the rest stays, free, its NIC reserved for a while. */
  deleteVm(id: string, { reserve = true }: { reserve?: boolean } = {}): void {
    const { properties } = this.vm(id);
    this.remove(id);
    for (const { id: nic, properties: link } of properties.networkProfile.networkInterfaces) {
      if (link.deleteOption === 'Delete') this.remove(nic);
      else if (this.get(nic)) this.freeNic(nic, reserve ? id : undefined);
    }
    for (const { disk, goesAlong } of this.#disksOf(properties)) {
      if (goesAlong) this.remove(disk);
      else this.freeDisk(disk);
    }
    this.#emit({ subscription: this.id, vmId: id, change: 'delete', time: this.world.clock.now() });
  }

  freeNic(id: string, reservedFor?: string): void {
    const { virtualMachine: _, ...properties } = this.nic(id).properties;
    this.put({ ...this.nic(id), properties });
    if (reservedFor !== undefined) this.reserve(id, reservedFor);
  }

  /** Also for a VM that was never made: a failed creation reserves as well. */
  reserve(nicId: string, vm: string): void {
    this.#reserved.set(nicId.toLowerCase(), { vm, untilMs: this.world.clock.now().getTime() + RESERVED_MS });
  }

  /** The VM that a NIC is reserved for. */
  reservedFor(nicId: string): string | undefined {
    const found = this.#reserved.get(nicId.toLowerCase());
    return found && this.world.clock.now().getTime() < found.untilMs ? found.vm : undefined;
  }

  freeDisk(id: string): void {
    this.#changeDisk(
      id,
      { diskState: 'Unattached', LastOwnershipUpdateTime: armTime(this.world.clock.now()) },
      undefined,
    );
  }

  /** With `ms` the attach is in flight for so long: the disk reads `Unattached` till then, and a delete would succeed. */
  attachDisk(id: string, vmId: string, ms = 0): void {
    this.later(ms, () => this.get(id) && this.#hold(id, vmId));
  }

  /** With `ms` the detach is in flight for so long: the disk reads `Attached` till then. */
  detachDisk(id: string, ms = 0): void {
    this.later(ms, () => this.get(id) && this.freeDisk(id));
  }

  /** With `ms` the NIC reads `Updating` till then, without its VM. */
  attachNic(id: string, vmId: string, ms = 0): void {
    if (ms > 0)
      this.put({ ...this.nic(id), properties: { ...this.nic(id).properties, provisioningState: 'Updating' } });
    this.later(ms, () => {
      if (!this.get(id)) return;
      const properties = { ...this.nic(id).properties, provisioningState: 'Succeeded', virtualMachine: { id: vmId } };
      this.put({ ...this.nic(id), properties });
    });
  }

  /** `Reserved`, `ActiveSAS`, `Frozen`, …: what else a disk's state can be. */
  setDisk(id: string, properties: Partial<DiskWire>): void {
    this.#changeDisk(id, properties, this.disk(id).managedBy);
  }

  tag(id: string, tags: Readonly<Record<string, string>>): void {
    this.put({ ...this.need(id), tags });
  }

  /** On a subscription, a group or a resource; all below inherit it. */
  lock(scope: string, level: 'CanNotDelete' | 'ReadOnly' = 'CanNotDelete'): void {
    this.locks.set(scope.toLowerCase(), level);
  }

  deny(scope: string): void {
    this.denyAssignments.add(scope.toLowerCase());
  }

  /** Those that still exist. */
  #disksOf({ storageProfile }: VmBody['properties']): { disk: string; goesAlong: boolean }[] {
    const { osDisk, dataDisks = [] } = storageProfile ?? {};
    return [osDisk, ...dataDisks].flatMap((one) => {
      const disk = one?.managedDisk?.id;
      return disk !== undefined && this.get(disk) ? [{ disk, goesAlong: one?.deleteOption === 'Delete' }] : [];
    });
  }

  #changeDisksOf(vmId: string, diskState: 'Reserved' | 'Attached'): void {
    const change = { diskState, LastOwnershipUpdateTime: armTime(this.world.clock.now()) };
    for (const { disk } of this.#disksOf(this.vm(vmId).properties)) this.#changeDisk(disk, change, vmId);
  }

  #hold(id: string, vmId: string): void {
    const time = armTime(this.world.clock.now());
    this.#changeDisk(id, { diskState: 'Attached', LastOwnershipUpdateTime: time }, vmId);
  }

  #changeDisk(id: string, properties: Partial<DiskWire>, managedBy: string | undefined): void {
    const disk = this.disk(id);
    this.put({ ...disk, managedBy, properties: { ...disk.properties, ...properties } });
  }
}
