import type { Instance, NetworkInterface, Snapshot, Tag, Volume } from '@aws-sdk/client-ec2';
import type { Ec2Error } from './errors.ts';
import { type Fields, type Filter, idsAmong, matcher } from './filters.ts';
import type { Region } from './region.ts';
import type { Ec2Request } from './request.ts';
import { instance, networkInterface, type Shape, snapshot, toXml, volume } from './shapes.ts';
import type { Table } from './table.ts';

/** How one kind of thing is described. */
interface Kind<T> {
  readonly table: (region: Region) => Table<T>;
  readonly idParameter: string;
  readonly idFilter: string;
  /** The filter that asks for free ones, where the table knows them: `status` = `available`. */
  readonly freeFilter?: string;
  readonly idOf: (row: T) => string | undefined;
  readonly tagsOf: (row: T) => readonly Tag[];
  readonly fields: Fields<T>;
  readonly missing: (id: string) => Ec2Error;
  readonly shape: Shape<T>;
}

export interface Described {
  readonly rows: Record<string, unknown>[];
  readonly token?: string;
}

/** One page of a describe call. Ids that do not exist fail the call as a whole, as they do at EC2; filters do not. */
export function describe<T>(region: Region, request: Ec2Request, kind: Kind<T>): Described {
  const table = kind.table(region);
  const ids = request.list(kind.idParameter);
  const { from, limit } = request.page(ids);
  const filters = request.filters();
  const matches = matcher(filters, kind.fields, kind.tagsOf);
  const write = (rows: readonly T[]) => rows.map((row) => toXml(row as object, kind.shape as Shape<never>));
  const named = ids.length > 0 ? ids.map((id) => seen(table, id, kind)) : undefined;
  const byId = idsAmong(filters, kind.idFilter)?.flatMap((id) => table.seen(id) ?? []);
  const known = named ?? byId;
  if (known) {
    const matching = known.filter(matches);
    const more = from + limit < matching.length;
    return { rows: write(matching.slice(from, from + limit)), ...(more && { token: request.tokenOf(from + limit) }) };
  }
  const { rows, next } = table.page(from, limit, matches, onlyFree(filters, kind.freeFilter));
  return { rows: write(rows), ...(next !== undefined && { token: request.tokenOf(next) }) };
}

function onlyFree(filters: readonly Filter[], name: string | undefined): boolean {
  const wanted = filters.find((filter) => filter.name === name)?.values;
  return wanted?.length === 1 && wanted[0] === 'available';
}

function seen<T>(table: Table<T>, id: string, kind: Kind<T>): T {
  const row = table.seen(id);
  if (row === undefined) throw kind.missing(id);
  return row;
}

const text = (value: boolean | number | Date | undefined) =>
  value instanceof Date ? value.toISOString() : value === undefined ? undefined : String(value);

export function volumes(missing: (id: string) => Ec2Error): Kind<Volume> {
  return {
    table: (region) => region.volumes,
    idParameter: 'VolumeId',
    idFilter: 'volume-id',
    freeFilter: 'status',
    idOf: (row) => row.VolumeId,
    tagsOf: (row) => row.Tags ?? [],
    missing,
    shape: volume,
    fields: {
      'volume-id': (row) => [row.VolumeId],
      status: (row) => [row.State],
      'availability-zone': (row) => [row.AvailabilityZone],
      'volume-type': (row) => [row.VolumeType],
      size: (row) => [text(row.Size)],
      'snapshot-id': (row) => [row.SnapshotId],
      encrypted: (row) => [text(row.Encrypted)],
      'create-time': (row) => [text(row.CreateTime)],
      'attachment.attach-time': (row) => row.Attachments?.map(({ AttachTime }) => text(AttachTime)) ?? [],
      'attachment.delete-on-termination': (row) =>
        row.Attachments?.map(({ DeleteOnTermination }) => text(DeleteOnTermination)) ?? [],
      'attachment.device': (row) => row.Attachments?.map(({ Device }) => Device) ?? [],
      'attachment.instance-id': (row) => row.Attachments?.map(({ InstanceId }) => InstanceId) ?? [],
      'attachment.status': (row) => row.Attachments?.map(({ State }) => State) ?? [],
      'operator.managed': (row) => [text(row.Operator?.Managed)],
      'operator.principal': (row) => [row.Operator?.Principal],
      'multi-attach-enabled': (row) => [text(row.MultiAttachEnabled)],
    },
  };
}

export function enis(missing: (id: string) => Ec2Error): Kind<NetworkInterface> {
  return {
    table: (region) => region.enis,
    idParameter: 'NetworkInterfaceId',
    idFilter: 'network-interface-id',
    freeFilter: 'status',
    idOf: (row) => row.NetworkInterfaceId,
    tagsOf: (row) => row.TagSet ?? [],
    missing,
    shape: networkInterface,
    fields: {
      'network-interface-id': (row) => [row.NetworkInterfaceId],
      status: (row) => [row.Status],
      description: (row) => [row.Description],
      'requester-managed': (row) => [text(row.RequesterManaged)],
      'interface-type': (row) => [row.InterfaceType],
      'requester-id': (row) => [row.RequesterId],
      'owner-id': (row) => [row.OwnerId],
      'availability-zone': (row) => [row.AvailabilityZone],
      'group-id': (row) => row.Groups?.map(({ GroupId }) => GroupId) ?? [],
      'group-name': (row) => row.Groups?.map(({ GroupName }) => GroupName) ?? [],
      'attachment.attachment-id': (row) => [row.Attachment?.AttachmentId],
      'attachment.delete-on-termination': (row) => [text(row.Attachment?.DeleteOnTermination)],
      'attachment.device-index': (row) => [text(row.Attachment?.DeviceIndex)],
      'attachment.instance-id': (row) => [row.Attachment?.InstanceId],
      'attachment.instance-owner-id': (row) => [row.Attachment?.InstanceOwnerId],
      'attachment.status': (row) => [row.Attachment?.Status],
      'operator.managed': (row) => [text(row.Operator?.Managed)],
      'operator.principal': (row) => [row.Operator?.Principal],
      'vpc-id': (row) => [row.VpcId],
      'subnet-id': (row) => [row.SubnetId],
    },
  };
}

export function instances(missing: (id: string) => Ec2Error): Kind<Instance> {
  return {
    table: (region) => region.instances,
    idParameter: 'InstanceId',
    idFilter: 'instance-id',
    idOf: (row) => row.InstanceId,
    tagsOf: (row) => row.Tags ?? [],
    missing,
    shape: instance,
    fields: {
      'instance-id': (row) => [row.InstanceId],
      'instance-state-name': (row) => [row.State?.Name],
      'instance-state-code': (row) => [text(row.State?.Code)],
      'availability-zone': (row) => [row.Placement?.AvailabilityZone],
      'launch-time': (row) => [text(row.LaunchTime)],
      'block-device-mapping.volume-id': (row) => row.BlockDeviceMappings?.map(({ Ebs }) => Ebs?.VolumeId) ?? [],
      'network-interface.network-interface-id': (row) =>
        row.NetworkInterfaces?.map(({ NetworkInterfaceId }) => NetworkInterfaceId) ?? [],
    },
  };
}

export function snapshots(missing: (id: string) => Ec2Error): Kind<Snapshot> {
  return {
    table: (region) => region.snapshots,
    idParameter: 'SnapshotId',
    idFilter: 'snapshot-id',
    idOf: (row) => row.SnapshotId,
    tagsOf: (row) => row.Tags ?? [],
    missing,
    shape: snapshot,
    fields: {
      'snapshot-id': (row) => [row.SnapshotId],
      'volume-id': (row) => [row.VolumeId],
      'owner-id': (row) => [row.OwnerId],
      description: (row) => [row.Description],
      'start-time': (row) => [text(row.StartTime)],
      status: (row) => [row.State],
    },
  };
}
