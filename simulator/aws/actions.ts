import * as described from './describe.ts';
import { Ec2Error, notFound } from './errors.ts';
import type { Region } from './region.ts';
import type { Ec2Request } from './request.ts';
import { ACCOUNT } from './rows.ts';
import { region as regionShape, type Shape, toXml } from './shapes.ts';
import {
  createSnapshot,
  createTags,
  createVolume,
  deleteEni,
  deleteVolume,
  listRecycleBin,
  restoreFromBin,
} from './writes.ts';

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
    const reservations = rows.map((row) => ({
      reservationId: `r-${String(row.instanceId).slice('i-'.length)}`,
      ownerId: ACCOUNT,
      instancesSet: { item: [row] },
    }));
    return page('reservationSet', { rows: reservations, token });
  },
  DescribeSnapshots: (region, request) =>
    page('snapshotSet', described.describe(region, request, described.snapshots(notFound.snapshot))),
  DescribeRegions: (_, request, account) => {
    const named = request.list('RegionName');
    const known = [...account.regions, ...account.optIn];
    const strange = named.find((name) => !known.includes(name));
    if (strange !== undefined) throw new Ec2Error('InvalidParameterValue', `Invalid region provided: '${strange}'`);
    const shown = request.text('AllRegions') === 'true' ? known : account.regions;
    const all = named.length > 0 ? shown.filter((name) => named.includes(name)) : shown;
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
    createTags(region, request.list('ResourceId'), request.tags('Tag'));
    return { return: 'true' };
  },
  ListVolumesInRecycleBin: listRecycleBin,
  RestoreVolumeFromRecycleBin: (region, request) => {
    restoreFromBin(region, request.required('VolumeId'));
    return { return: 'true' };
  },
};

const PAGED = ['MaxResults', 'NextToken'];

/** What each action may be asked with, beside Action, Version and DryRun. */
export const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  DescribeVolumes: ['VolumeId', 'Filter', ...PAGED],
  DescribeNetworkInterfaces: ['NetworkInterfaceId', 'Filter', ...PAGED],
  DescribeInstances: ['InstanceId', 'Filter', 'IncludeManagedResources', ...PAGED],
  DescribeSnapshots: ['SnapshotId', 'Owner', 'Filter', ...PAGED],
  DescribeRegions: ['RegionName', 'AllRegions'],
  DeleteVolume: ['VolumeId'],
  DeleteNetworkInterface: ['NetworkInterfaceId'],
  CreateSnapshot: ['VolumeId', 'Description', 'TagSpecification'],
  CreateVolume: [
    'AvailabilityZone',
    'SnapshotId',
    'Size',
    'VolumeType',
    'Iops',
    'Throughput',
    'Encrypted',
    'KmsKeyId',
    'ClientToken',
    'TagSpecification',
  ],
  CreateTags: ['ResourceId', 'Tag'],
  ListVolumesInRecycleBin: ['VolumeId', ...PAGED],
  RestoreVolumeFromRecycleBin: ['VolumeId'],
};

const WRITES = /^(Delete|Create|Restore|Modify|Terminate|Detach|Attach)/;
export const isWrite = (action: string) => WRITES.test(action);

function page(
  name: string,
  { rows, token }: { rows: Record<string, unknown>[]; token?: string | undefined },
): Record<string, unknown> {
  return { [name]: { item: rows }, ...(token !== undefined && { nextToken: token }) };
}
