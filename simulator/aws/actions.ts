import * as described from './describe.ts';
import { Ec2Error, notFound } from './errors.ts';
import type { Region } from './region.ts';
import type { Ec2Request } from './request.ts';
import { binned, region as regionShape, type Shape, snapshot, toXml, volume } from './shapes.ts';

/** What the account has: regions that are on, and regions that it has not opted in to. */
export interface Account {
  readonly regions: readonly string[];
  readonly optIn: readonly string[];
}

type Action = (region: Region, request: Ec2Request, account: Account) => Record<string, unknown>;

/** The answer's elements by action. What is not here is not simulated, and says so. */
export const ACTIONS: Readonly<Record<string, Action>> = {
  DescribeVolumes: (region, request) =>
    page('volumeSet', described.describe(region, request, described.volumes(notFound.volume))),
  DescribeNetworkInterfaces: (region, request) =>
    page('networkInterfaceSet', described.describe(region, request, described.enis(notFound.eni))),
  DescribeInstances: (region, request) => {
    const { rows, token } = described.describe(region, request, described.instances(notFound.instance));
    // EC2 groups what was started together; here every instance was started alone.
    const reservations = rows.map((row, index) => ({
      reservationId: `r-${String(index).padStart(17, '0')}`,
      ownerId: '123456789012',
      instancesSet: { item: [row] },
    }));
    return page('reservationSet', { rows: reservations, token });
  },
  DescribeSnapshots: (region, request) =>
    page('snapshotSet', described.describe(region, request, described.snapshots(notFound.snapshot))),
  DescribeRegions: (_, request, account) => {
    const all = request.text('AllRegions') === 'true' ? [...account.regions, ...account.optIn] : account.regions;
    const rows = all.map((RegionName) => {
      const OptInStatus = account.optIn.includes(RegionName) ? 'not-opted-in' : 'opt-in-not-required';
      return toXml(
        { RegionName, Endpoint: `ec2.${RegionName}.amazonaws.com`, OptInStatus },
        regionShape as Shape<never>,
      );
    });
    return page('regionInfo', { rows });
  },
  DeleteVolume: (region, request) => {
    deleteVolume(region, request.required('VolumeId'));
    return { return: 'true' };
  },
  DeleteNetworkInterface: (region, request) => {
    deleteEni(region, request.required('NetworkInterfaceId'));
    return { return: 'true' };
  },
  CreateSnapshot: createSnapshot,
  CreateVolume: createVolume,
  CreateTags: (region, request) => {
    for (const id of request.list('ResourceId')) createTags(region, id, request.tags('Tag'));
    return { return: 'true' };
  },
  ListVolumesInRecycleBin: (region, request) => {
    const ids = request.list('VolumeId');
    const rows = [...region.bin.values()].filter(({ VolumeId = '' }) => ids.length === 0 || ids.includes(VolumeId));
    return page('volumeSet', { rows: rows.map((row) => toXml(row, binned as Shape<never>)) });
  },
  RestoreVolumeFromRecycleBin: (region, request) => {
    const id = request.required('VolumeId');
    const row = region.bin.get(id);
    if (!row) throw notFound.volume(id);
    region.bin.delete(id);
    region.volumes.set(id, { ...row, State: 'available' });
    return { return: 'true' };
  },
};

const WRITES = /^(Delete|Create|Restore|Modify|Terminate|Detach|Attach)/;
export const isWrite = (action: string) => WRITES.test(action);

function page(
  name: string,
  { rows, token }: { rows: Record<string, unknown>[]; token?: string | undefined },
): Record<string, unknown> {
  return { [name]: { item: rows }, ...(token !== undefined && { nextToken: token }) };
}

function isBusy(region: Region, id: string): boolean {
  return (region.busyUntilMs.get(id) ?? 0) > region.world.clock.now().getTime();
}

function deleteVolume(region: Region, id: string): void {
  const row = region.volumes.get(id);
  if (!row) throw notFound.volume(id);
  const [attachment] = row.Attachments ?? [];
  if (attachment || row.State === 'in-use' || isBusy(region, id)) {
    throw new Ec2Error(
      'VolumeInUse',
      `Volume ${id} is currently attached to ${attachment?.InstanceId ?? 'an instance'}`,
    );
  }
  if (row.State !== 'available') throw new Ec2Error('IncorrectState', `The volume '${id}' is '${row.State}'`);
  if (region.recycleBin) region.bin.set(id, row);
  region.volumes.set(id, undefined);
}

function deleteEni(region: Region, id: string): void {
  const row = region.enis.get(id);
  if (!row) throw notFound.eni(id);
  if (row.RequesterManaged)
    throw new Ec2Error('OperationNotPermitted', `You do not have permission to delete '${id}'`, 403);
  // The same words for one that is attached and for one that was a moment ago (amazon-vpc-cni-k8s 69, 608, 1223).
  if (row.Attachment || row.Status !== 'available' || isBusy(region, id)) {
    throw new Ec2Error('InvalidParameterValue', `Network interface '${id}' is currently in use.`);
  }
  region.enis.set(id, undefined);
}

function createSnapshot(region: Region, request: Ec2Request): Record<string, unknown> {
  const volumeId = request.required('VolumeId');
  const source = region.volumes.get(volumeId);
  if (!source) throw notFound.volume(volumeId);
  const id = region.id('snap');
  const row = {
    SnapshotId: id,
    VolumeId: volumeId,
    State: 'pending' as const,
    StartTime: region.world.now(),
    OwnerId: '123456789012',
    VolumeSize: source.Size,
    Description: request.text('Description') ?? '',
    Tags: request.tags(),
  };
  region.snapshots.set(id, row);
  const done = new Date(region.world.clock.now().getTime() + region.snapshotMs);
  region.world.at(done, () => region.snapshots.set(id, { ...row, State: 'completed' }));
  return toXml(row, snapshot as Shape<never>);
}

function createVolume(region: Region, request: Ec2Request): Record<string, unknown> {
  const snapshotId = request.text('SnapshotId');
  const source = snapshotId === undefined ? undefined : region.snapshots.get(snapshotId);
  if (snapshotId !== undefined && !source) throw notFound.snapshot(snapshotId);
  if (source && source.State !== 'completed')
    throw new Ec2Error('IncorrectState', `Snapshot is in invalid state - ${source.State}`);
  const id = region.createVolume(
    { sizeGiB: request.number('Size') ?? source?.VolumeSize },
    {
      AvailabilityZone: request.required('AvailabilityZone'),
      VolumeType: (request.text('VolumeType') ?? 'gp3') as 'gp3',
      SnapshotId: snapshotId,
      Tags: request.tags(),
    },
  );
  return toXml(region.volumes.get(id) ?? {}, volume as Shape<never>);
}

function createTags(region: Region, id: string, tags: readonly { Key: string; Value: string }[]): void {
  const row = region.volumes.get(id) ?? region.enis.get(id) ?? region.instances.get(id);
  if (!row) throw notFound.volume(id);
  const before = 'TagSet' in row ? (row.TagSet ?? []) : 'Tags' in row ? (row.Tags ?? []) : [];
  const all = new Map([...before, ...tags].map(({ Key = '', Value = '' }) => [Key, Value]));
  region.tag(id, Object.fromEntries(all));
}
