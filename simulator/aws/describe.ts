import type { Tag } from '@aws-sdk/client-ec2';
import type { Ec2Error } from './errors.ts';
import { type Fields, idsAmong, matcher } from './filters.ts';
import type { Region } from './region.ts';
import { type Ec2Request, encodeToken } from './request.ts';
import { instance, networkInterface, type Shape, snapshot, toXml, volume } from './shapes.ts';
import type { Table } from './table.ts';

/** How one kind of thing is described. */
interface Kind<T> {
  readonly table: (region: Region) => Table<T>;
  readonly idParameter: string;
  readonly idFilter: string;
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
    const rows = known.filter(matches).slice(from, from + limit);
    const more = from + limit < known.filter(matches).length;
    return { rows: write(rows), ...(more && { token: encodeToken(from + limit) }) };
  }
  const { rows, next } = table.page(from, limit, matches);
  return { rows: write(rows), ...(next !== undefined && { token: encodeToken(next) }) };
}

function seen<T>(table: Table<T>, id: string, kind: Kind<T>): T {
  const row = table.seen(id);
  if (row === undefined) throw kind.missing(id);
  return row;
}

const text = (value: boolean | number | undefined) => (value === undefined ? undefined : String(value));

export function volumes(missing: (id: string) => Ec2Error): Kind<import('@aws-sdk/client-ec2').Volume> {
  return {
    table: (region) => region.volumes,
    idParameter: 'VolumeId',
    idFilter: 'volume-id',
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
      'attachment.instance-id': (row) => (row.Attachments ?? []).map(({ InstanceId }) => InstanceId),
      'attachment.status': (row) => (row.Attachments ?? []).map(({ State }) => State),
      'multi-attach-enabled': (row) => [text(row.MultiAttachEnabled)],
    },
  };
}

export function enis(missing: (id: string) => Ec2Error): Kind<import('@aws-sdk/client-ec2').NetworkInterface> {
  return {
    table: (region) => region.enis,
    idParameter: 'NetworkInterfaceId',
    idFilter: 'network-interface-id',
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
      'attachment.instance-id': (row) => [row.Attachment?.InstanceId],
      'vpc-id': (row) => [row.VpcId],
      'subnet-id': (row) => [row.SubnetId],
    },
  };
}

export function instances(missing: (id: string) => Ec2Error): Kind<import('@aws-sdk/client-ec2').Instance> {
  return {
    table: (region) => region.instances,
    idParameter: 'InstanceId',
    idFilter: 'instance-id',
    idOf: (row) => row.InstanceId,
    tagsOf: (row) => row.Tags ?? [],
    missing,
    shape: instance,
    fields: { 'instance-id': (row) => [row.InstanceId], 'instance-state-name': (row) => [row.State?.Name] },
  };
}

export function snapshots(missing: (id: string) => Ec2Error): Kind<import('@aws-sdk/client-ec2').Snapshot> {
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
      status: (row) => [row.State],
    },
  };
}
