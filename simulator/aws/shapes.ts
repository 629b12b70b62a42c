import type {
  GroupIdentifier,
  Instance,
  InstanceBlockDeviceMapping,
  InstanceNetworkInterface,
  InstanceState,
  NetworkInterface,
  NetworkInterfaceAssociation,
  NetworkInterfaceAttachment,
  OperatorResponse,
  Placement,
  Region,
  Snapshot,
  Tag,
  Volume,
  VolumeAttachment,
  VolumeRecycleBinInfo,
} from '@aws-sdk/client-ec2';

/** A field's name in EC2's XML; `list` has one `<item>` an entry. */
type Field = string | { readonly name: string; readonly of?: Shape<never>; readonly list?: boolean };
/** Only fields that the SDK's own type has. */
export type Shape<T> = { readonly [K in keyof T]?: Field };

const list = <T>(name: string, of?: Shape<T>): Field => ({ name, list: true, ...(of && { of: of as Shape<never> }) });
const struct = <T>(name: string, of: Shape<T>): Field => ({ name, of: of as Shape<never> });

const tag: Shape<Tag> = { Key: 'key', Value: 'value' };
const group: Shape<GroupIdentifier> = { GroupId: 'groupId', GroupName: 'groupName' };
const operator: Shape<OperatorResponse> = { Managed: 'managed', Principal: 'principal' };

const volumeAttachment: Shape<VolumeAttachment> = {
  VolumeId: 'volumeId',
  InstanceId: 'instanceId',
  Device: 'device',
  State: 'status',
  AttachTime: 'attachTime',
  DeleteOnTermination: 'deleteOnTermination',
  AssociatedResource: 'associatedResource',
  InstanceOwningService: 'instanceOwningService',
};

export const volume: Shape<Volume> = {
  VolumeId: 'volumeId',
  Size: 'size',
  SnapshotId: 'snapshotId',
  AvailabilityZone: 'availabilityZone',
  State: 'status',
  CreateTime: 'createTime',
  Attachments: list('attachmentSet', volumeAttachment),
  Tags: list('tagSet', tag),
  VolumeType: 'volumeType',
  Iops: 'iops',
  Throughput: 'throughput',
  Encrypted: 'encrypted',
  KmsKeyId: 'kmsKeyId',
  MultiAttachEnabled: 'multiAttachEnabled',
  Operator: struct('operator', operator),
};

const eniAttachment: Shape<NetworkInterfaceAttachment> = {
  AttachmentId: 'attachmentId',
  InstanceId: 'instanceId',
  InstanceOwnerId: 'instanceOwnerId',
  DeviceIndex: 'deviceIndex',
  Status: 'status',
  AttachTime: 'attachTime',
  DeleteOnTermination: 'deleteOnTermination',
};

const association: Shape<NetworkInterfaceAssociation> = {
  AllocationId: 'allocationId',
  AssociationId: 'associationId',
  IpOwnerId: 'ipOwnerId',
  PublicIp: 'publicIp',
};

export const networkInterface: Shape<NetworkInterface> = {
  Association: struct('association', association),
  NetworkInterfaceId: 'networkInterfaceId',
  SubnetId: 'subnetId',
  VpcId: 'vpcId',
  AvailabilityZone: 'availabilityZone',
  Description: 'description',
  OwnerId: 'ownerId',
  RequesterId: 'requesterId',
  RequesterManaged: 'requesterManaged',
  Status: 'status',
  InterfaceType: 'interfaceType',
  Attachment: struct('attachment', eniAttachment),
  Groups: list('groupSet', group),
  TagSet: list('tagSet', tag),
  Operator: struct('operator', operator),
};

const ebs: Shape<NonNullable<InstanceBlockDeviceMapping['Ebs']>> = {
  VolumeId: 'volumeId',
  Status: 'status',
  AttachTime: 'attachTime',
  DeleteOnTermination: 'deleteOnTermination',
};
const mapping: Shape<InstanceBlockDeviceMapping> = { DeviceName: 'deviceName', Ebs: struct('ebs', ebs) };
const instanceEni: Shape<InstanceNetworkInterface> = { NetworkInterfaceId: 'networkInterfaceId', Status: 'status' };
const placement: Shape<Placement> = { AvailabilityZone: 'availabilityZone' };
const state: Shape<InstanceState> = { Code: 'code', Name: 'name' };

export const instance: Shape<Instance> = {
  InstanceId: 'instanceId',
  State: struct('instanceState', state),
  LaunchTime: 'launchTime',
  Placement: struct('placement', placement),
  BlockDeviceMappings: list('blockDeviceMapping', mapping),
  NetworkInterfaces: list('networkInterfaceSet', instanceEni),
  Tags: list('tagSet', tag),
};

export const region: Shape<Region> = {
  RegionName: 'regionName',
  Endpoint: 'regionEndpoint',
  OptInStatus: 'optInStatus',
};

export const snapshot: Shape<Snapshot> = {
  SnapshotId: 'snapshotId',
  VolumeId: 'volumeId',
  State: 'status',
  StartTime: 'startTime',
  Progress: 'progress',
  OwnerId: 'ownerId',
  Description: 'description',
  VolumeSize: 'volumeSize',
  Tags: list('tagSet', tag),
};

export const binned: Shape<VolumeRecycleBinInfo> = {
  VolumeId: 'volumeId',
  State: 'state',
  CreateTime: 'createTime',
  Size: 'size',
  VolumeType: 'volumeType',
  AvailabilityZone: 'availabilityZone',
  Iops: 'iops',
  Throughput: 'throughput',
  SnapshotId: 'snapshotId',
  Operator: struct('operator', operator),
  RecycleBinEnterTime: 'recycleBinEnterTime',
  RecycleBinExitTime: 'recycleBinExitTime',
};

/** Turns a value of the SDK's type into what EC2 would write. */
export function toXml(value: object, shape: Shape<never>): Record<string, unknown> {
  const written: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(shape) as [string, Field][]) {
    const one = (value as Record<string, unknown>)[key];
    if (one === undefined) continue;
    if (typeof field === 'string') written[field] = scalar(one);
    else if (field.list)
      written[field.name] = { item: (one as object[]).map((entry) => (field.of ? toXml(entry, field.of) : entry)) };
    else written[field.name] = toXml(one as object, field.of as Shape<never>);
  }
  return written;
}

const scalar = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value));
