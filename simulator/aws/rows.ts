import type { Instance, NetworkInterface, Tag, Volume } from '@aws-sdk/client-ec2';

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
  /** How long it is `pending` before it runs; 0 = it runs at once, and no event tells of `pending`. */
  readonly pendingMs?: number;
}

export const ACCOUNT = '123456789012';
const GROUPS = [{ GroupId: 'sg-00000000000000001', GroupName: 'default' }];

export const toTags = (tags: Readonly<Record<string, string>> = {}): Tag[] =>
  Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));

export function newVolume(
  id: string,
  region: string,
  now: Date,
  { tags, sizeGiB = 20, type = 'gp3' }: VolumeSpec,
  over: Partial<Volume>,
): Volume {
  return {
    VolumeId: id,
    Size: sizeGiB,
    VolumeType: type,
    State: 'available',
    AvailabilityZone: `${region}a`,
    CreateTime: now,
    Encrypted: false,
    MultiAttachEnabled: false,
    Iops: 3000,
    Throughput: 125,
    Attachments: [],
    Tags: toTags(tags),
    ...over,
  };
}

export function newEni(id: string, region: string, { tags, description = '', over = {} }: EniSpec): NetworkInterface {
  return {
    NetworkInterfaceId: id,
    Status: 'available',
    Description: description,
    InterfaceType: 'interface',
    RequesterManaged: false,
    OwnerId: ACCOUNT,
    AvailabilityZone: `${region}a`,
    SubnetId: 'subnet-00000000000000001',
    VpcId: 'vpc-00000000000000001',
    Groups: GROUPS,
    TagSet: toTags(tags),
    ...over,
  };
}

export type StateName = 'pending' | 'running' | 'stopping' | 'stopped' | 'shutting-down' | 'terminated';

const CODES: Readonly<Record<StateName, number>> = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
};

export const stateOf = (Name: StateName): NonNullable<Instance['State']> => ({ Name, Code: CODES[Name] });
