import type { Instance, NetworkInterface, Snapshot, Tag, Volume } from '@aws-sdk/client-ec2';
import type { World } from '../world/world.ts';
import type { StateChange } from './events.ts';
import { Table } from './table.ts';

export interface VolumeSpec {
  readonly tags?: Readonly<Record<string, string>>;
  readonly sizeGiB?: number;
  readonly type?: Volume['VolumeType'];
  readonly deleteOnTermination?: boolean;
}

export interface EniSpec {
  readonly tags?: Readonly<Record<string, string>>;
  readonly description?: string;
  readonly deleteOnTermination?: boolean;
  /** Anything else that EC2 would say of it: `{ RequesterManaged: true, InterfaceType: 'lambda' }`. */
  readonly over?: Partial<NetworkInterface>;
}

export interface InstanceSpec {
  readonly name?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly volumes?: readonly VolumeSpec[];
  readonly enis?: readonly EniSpec[];
}

/** An ENI or volume that was attached a moment ago answers a delete with 'in use' for this long. */
const BUSY_MS = 30_000;
/** A terminated instance stays visible for about an hour. */
const REMEMBERED_MS = 3_600_000;
const ACCOUNT = '123456789012';

const toTags = (tags: Readonly<Record<string, string>> = {}): Tag[] =>
  Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));

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
  /** Volumes in the Recycle Bin, when its rule is on. */
  readonly bin = new Map<string, Volume>();
  recycleBin = false;
  /** Since when something is still busy though it reads free. */
  readonly busyUntilMs = new Map<string, number>();
  readonly groups = new Map<string, { arns: string[]; queryErrors?: { ErrorCode: string; Message: string }[] }>();
  busyMs = BUSY_MS;
  snapshotMs = 60_000;
  #emit: (change: StateChange) => void;
  #serial = 0;

  constructor(name: string, world: World, emit: (change: StateChange) => void) {
    this.name = name;
    this.world = world;
    this.volumes = new Table(world);
    this.enis = new Table(world);
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

  set lagMs(ms: number) {
    for (const table of [this.volumes, this.enis, this.instances, this.snapshots]) table.lagMs = ms;
  }

  createVolume({ tags, sizeGiB = 20, type = 'gp3' }: VolumeSpec = {}, over: Partial<Volume> = {}): string {
    const id = over.VolumeId ?? this.id('vol');
    this.volumes.set(id, {
      VolumeId: id,
      Size: sizeGiB,
      VolumeType: type,
      State: 'available',
      AvailabilityZone: `${this.name}a`,
      CreateTime: this.world.now(),
      Encrypted: false,
      MultiAttachEnabled: false,
      Iops: 3000,
      Throughput: 125,
      Attachments: [],
      Tags: toTags(tags),
      ...over,
    });
    return id;
  }

  createEni({ tags, description = '', over = {} }: EniSpec = {}): string {
    const id = over.NetworkInterfaceId ?? this.id('eni');
    this.enis.set(id, {
      NetworkInterfaceId: id,
      Status: 'available',
      Description: description,
      InterfaceType: 'interface',
      RequesterManaged: false,
      OwnerId: ACCOUNT,
      AvailabilityZone: `${this.name}a`,
      SubnetId: 'subnet-00000000000000001',
      VpcId: 'vpc-00000000000000001',
      TagSet: toTags(tags),
      ...over,
    });
    return id;
  }

  run({ name, tags = {}, volumes = [], enis = [] }: InstanceSpec = {}): string {
    const id = this.id('i');
    const all = name === undefined ? tags : { Name: name, ...tags };
    this.instances.set(id, {
      InstanceId: id,
      State: { Name: 'running', Code: 16 },
      LaunchTime: this.world.now(),
      Tags: toTags(all),
    });
    for (const spec of volumes) this.attachVolume(this.createVolume(spec), id, spec.deleteOnTermination);
    for (const spec of enis) this.attachEni(this.createEni(spec), id, spec.deleteOnTermination);
    this.#emit({ region: this.name, instanceId: id, state: 'running', time: this.world.now() });
    return id;
  }

  attachVolume(volumeId: string, InstanceId: string, DeleteOnTermination = false): void {
    const attachment = {
      VolumeId: volumeId,
      InstanceId,
      State: 'attached',
      DeleteOnTermination,
      AttachTime: this.world.now(),
    } as const;
    this.changeVolume(volumeId, { State: 'in-use', Attachments: [attachment] });
    const Ebs = { VolumeId: volumeId, Status: 'attached', DeleteOnTermination, AttachTime: this.world.now() } as const;
    const instance = this.instances.get(InstanceId) as Instance;
    const BlockDeviceMappings = [...(instance.BlockDeviceMappings ?? []), { DeviceName: '/dev/xvdb', Ebs }];
    this.instances.set(InstanceId, { ...instance, BlockDeviceMappings });
  }

  attachEni(eniId: string, InstanceId: string, DeleteOnTermination = false): void {
    const instance = this.instances.get(InstanceId) as Instance;
    const before = instance.NetworkInterfaces ?? [];
    const Attachment = {
      AttachmentId: this.id('eni-attach'),
      InstanceId,
      DeleteOnTermination,
      DeviceIndex: before.length,
      Status: 'attached',
      InstanceOwnerId: ACCOUNT,
    } as const;
    this.changeEni(eniId, { Status: 'in-use', Attachment });
    this.instances.set(InstanceId, {
      ...instance,
      NetworkInterfaces: [...before, { NetworkInterfaceId: eniId, Status: 'in-use' }],
    });
  }

  /** Frees a volume or ENI; for a while it still answers a delete with 'in use'. */
  detach(id: string): void {
    const instanceId = this.volumes.get(id)?.Attachments?.[0]?.InstanceId ?? this.enis.get(id)?.Attachment?.InstanceId;
    if (id.startsWith('vol-')) this.changeVolume(id, { State: 'available', Attachments: [] });
    else this.changeEni(id, { Status: 'available', Attachment: undefined });
    this.busyUntilMs.set(id, this.world.clock.now().getTime() + this.busyMs);
    const instance = instanceId === undefined ? undefined : this.instances.get(instanceId);
    if (!instance?.InstanceId) return;
    this.instances.set(instance.InstanceId, {
      ...instance,
      BlockDeviceMappings: instance.BlockDeviceMappings?.filter(({ Ebs }) => Ebs?.VolumeId !== id),
      NetworkInterfaces: instance.NetworkInterfaces?.filter(({ NetworkInterfaceId }) => NetworkInterfaceId !== id),
    });
  }

  /** Shuts down, then is terminated: what goes with it goes, the rest is left behind; about an hour later it is forgotten. */
  terminate(id: string, { shuttingDownMs = 0 }: { shuttingDownMs?: number } = {}): void {
    const change = (Name: 'shutting-down' | 'terminated', Code: number) => {
      this.instances.set(id, { ...this.instances.get(id), State: { Name, Code } });
      this.#emit({ region: this.name, instanceId: id, state: Name, time: this.world.clock.now() });
    };
    change('shutting-down', 32);
    const end = () => {
      const { BlockDeviceMappings = [], NetworkInterfaces = [] } = this.instances.get(id) ?? {};
      for (const { Ebs } of BlockDeviceMappings) this.#release(Ebs?.VolumeId ?? '');
      for (const { NetworkInterfaceId } of NetworkInterfaces) this.#release(NetworkInterfaceId ?? '');
      this.instances.set(id, { ...this.instances.get(id), BlockDeviceMappings: [], NetworkInterfaces: [] });
      change('terminated', 48);
      this.world.at(new Date(this.world.clock.now().getTime() + REMEMBERED_MS), () =>
        this.instances.set(id, undefined),
      );
    };
    if (shuttingDownMs === 0) end();
    else this.world.at(new Date(this.world.clock.now().getTime() + shuttingDownMs), end);
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
    else this.instances.set(id, { ...this.instances.get(id), Tags: toTags(tags) });
  }

  #release(id: string): void {
    const withIt =
      this.volumes.get(id)?.Attachments?.[0]?.DeleteOnTermination ?? this.enis.get(id)?.Attachment?.DeleteOnTermination;
    if (!withIt) this.detach(id);
    else if (id.startsWith('vol-')) this.volumes.set(id, undefined);
    else this.enis.set(id, undefined);
  }
}
