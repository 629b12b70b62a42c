import type { Instance, NetworkInterface, Snapshot, Volume, VolumeRecycleBinInfo } from '@aws-sdk/client-ec2';
import type { World } from '../world/world.ts';
import { attachEni, attachVolume, detach, release } from './attachments.ts';
import type { StateChange } from './events.ts';
import {
  ACCOUNT,
  type EniSpec,
  type InstanceSpec,
  newEni,
  newVolume,
  type StateName,
  stateOf,
  toTags,
  type VolumeSpec,
} from './rows.ts';
import { Table } from './table.ts';

/** An ENI or volume that was attached a moment ago answers a delete with 'in use' for this long. */
const BUSY_MS = 30_000;
/** A terminated instance stays visible for about an hour. */
const REMEMBERED_MS = 3_600_000;

/**
 * One region's estate, and what people, controllers and time do to it. Everything is kept in the SDK's own types, as EC2
 * would say it.
 */
export class Region {
  readonly name: string;
  readonly world: World;
  readonly volumes: Table<Volume>;
  readonly enis: Table<NetworkInterface>;
  readonly instances: Table<Instance>;
  readonly snapshots: Table<Snapshot>;
  /** Volumes in the Recycle Bin, when its rule is on; what is past its exit time is purged by the next look at it. */
  readonly bin = new Map<string, Volume & VolumeRecycleBinInfo>();
  recycleBin = false;
  /** How long the Recycle Bin keeps a volume. */
  binMs = 7 * 86_400_000;
  /** Since when something is still busy though it reads free. */
  readonly busyUntilMs = new Map<string, number>();
  readonly groups = new Map<string, { arns: string[]; queryErrors?: { ErrorCode: string; Message: string }[] }>();
  /** When a volume's last snapshot was begun. */
  readonly snapshotAtMs = new Map<string, number>();
  /** What was made under a ClientToken, and by which request. */
  readonly clientTokens = new Map<string, { readonly id: string; readonly fingerprint: string }>();
  busyMs = BUSY_MS;
  snapshotMs = 60_000;
  /** Least time between two snapshots of a volume. */
  snapshotGapMs = 15_000;
  /** How long an attachment reads `attaching`, and `detaching`. */
  attachMs = 0;
  detachMs = 0;
  /** How long a deleted volume reads `deleting` before it is gone. */
  deletingMs = 0;
  #emit: (change: StateChange) => void;
  #serial = 0;

  constructor(name: string, world: World, emit: (change: StateChange) => void) {
    this.name = name;
    this.world = world;
    this.volumes = new Table<Volume>(world, ({ State }) => State === 'available');
    this.enis = new Table<NetworkInterface>(world, ({ Status }) => Status === 'available');
    this.instances = new Table(world);
    this.snapshots = new Table(world);
    this.#emit = emit;
  }

  id(prefix: string): string {
    this.#serial += 1;
    return `${prefix}-0${this.#serial.toString(16).padStart(16, '0')}`;
  }

  arn(kind: string, id: string): string {
    return `arn:aws:ec2:${this.name}:${ACCOUNT}:${kind}/${id}`;
  }

  /** Runs `run` so much later, or at once. */
  after(ms: number, run: () => void): void {
    if (ms <= 0) run();
    else this.world.at(new Date(this.world.clock.now().getTime() + ms), run);
  }

  set lagMs(ms: number) {
    for (const table of [this.volumes, this.enis, this.instances, this.snapshots]) table.lagMs = ms;
  }

  createVolume(spec: VolumeSpec = {}, over: Partial<Volume> = {}): string {
    const id = over.VolumeId ?? this.id('vol');
    this.volumes.set(id, newVolume(id, this.name, this.world.now(), spec, over));
    return id;
  }

  createEni(spec: EniSpec = {}): string {
    const id = spec.over?.NetworkInterfaceId ?? this.id('eni');
    this.enis.set(id, newEni(id, this.name, spec));
    return id;
  }

  run({ name, tags = {}, volumes = [], enis = [], pendingMs = 0 }: InstanceSpec = {}): string {
    const id = this.id('i');
    this.instances.set(id, {
      InstanceId: id,
      LaunchTime: this.world.now(),
      Placement: { AvailabilityZone: `${this.name}a` },
      BlockDeviceMappings: [],
      NetworkInterfaces: [],
      Tags: toTags(name === undefined ? tags : { Name: name, ...tags }),
    });
    for (const spec of volumes) this.attachVolume(this.createVolume(spec), id, spec.deleteOnTermination);
    for (const spec of enis) this.attachEni(this.createEni(spec), id, spec.deleteOnTermination);
    this.#start(id, pendingMs);
    return id;
  }

  stop(id: string, { stoppingMs = 0 }: { stoppingMs?: number } = {}): void {
    this.#enter(id, 'stopping');
    this.after(stoppingMs, () => this.#from('stopping', id, 'stopped'));
  }

  start(id: string, { pendingMs = 0 }: { pendingMs?: number } = {}): void {
    this.#start(id, pendingMs);
  }

  /** @throws when it is attached already and takes one attachment only */
  attachVolume(volumeId: string, instanceId: string, deleteOnTermination = false): void {
    attachVolume(this, volumeId, instanceId, deleteOnTermination);
  }

  attachEni(eniId: string, instanceId: string, deleteOnTermination = false): void {
    attachEni(this, eniId, instanceId, deleteOnTermination);
  }

  /** Frees a volume (of one instance, or of all) or ENI; for a while it still answers a delete with 'in use'. */
  detach(id: string, instanceId?: string): void {
    detach(this, id, instanceId);
  }

  /** Shuts down, then is terminated: what goes with it goes, the rest is left behind; about an hour later it is forgotten. */
  terminate(id: string, { shuttingDownMs = 0 }: { shuttingDownMs?: number } = {}): void {
    this.#enter(id, 'shutting-down');
    this.after(shuttingDownMs, () => {
      const { BlockDeviceMappings = [], NetworkInterfaces = [] } = this.instances.get(id) ?? {};
      for (const { Ebs } of BlockDeviceMappings) release(this, Ebs?.VolumeId ?? '', id);
      for (const { NetworkInterfaceId } of NetworkInterfaces) release(this, NetworkInterfaceId ?? '', id);
      this.instances.set(id, { ...this.instances.get(id), BlockDeviceMappings: [], NetworkInterfaces: [] });
      this.#enter(id, 'terminated');
      this.after(REMEMBERED_MS, () => this.instances.set(id, undefined));
    });
  }

  /** Deletes a volume for good, or into the Recycle Bin when its rule is on. */
  removeVolume(id: string): void {
    const row = this.volumes.get(id);
    if (!row) return;
    if (this.deletingMs > 0) this.changeVolume(id, { State: 'deleting' });
    this.after(this.deletingMs, () => {
      const RecycleBinEnterTime = this.world.clock.now();
      const RecycleBinExitTime = new Date(RecycleBinEnterTime.getTime() + this.binMs);
      if (this.recycleBin) this.bin.set(id, { ...row, RecycleBinEnterTime, RecycleBinExitTime });
      this.volumes.set(id, undefined);
    });
  }

  changeVolume(id: string, over: Partial<Volume>): void {
    this.volumes.set(id, { ...this.volumes.get(id), ...over });
  }

  changeEni(id: string, over: Partial<NetworkInterface>): void {
    this.enis.set(id, { ...this.enis.get(id), ...over });
  }

  tag(id: string, tags: Readonly<Record<string, string>>): void {
    if (id.startsWith('vol-')) this.changeVolume(id, { Tags: toTags(tags) });
    else if (id.startsWith('eni-')) this.changeEni(id, { TagSet: toTags(tags) });
    else if (id.startsWith('snap-')) this.snapshots.set(id, { ...this.snapshots.get(id), Tags: toTags(tags) });
    else this.instances.set(id, { ...this.instances.get(id), Tags: toTags(tags) });
  }

  #start(id: string, pendingMs: number): void {
    if (pendingMs > 0) this.#enter(id, 'pending');
    const begin = pendingMs > 0 ? () => this.#from('pending', id, 'running') : () => this.#enter(id, 'running');
    this.after(pendingMs, begin);
  }

  /** Enters the state unless something else happened to the instance meanwhile. */
  #from(before: StateName, id: string, name: StateName): void {
    if (this.instances.get(id)?.State?.Name === before) this.#enter(id, name);
  }

  #enter(id: string, name: StateName): void {
    this.instances.set(id, { ...this.instances.get(id), State: stateOf(name) });
    this.#emit({ region: this.name, instanceId: id, state: name, time: this.world.clock.now() });
  }
}
