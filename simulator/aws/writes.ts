import type { Tag } from '@aws-sdk/client-ec2';
import { Ec2Error, notFound } from './errors.ts';
import type { Region } from './region.ts';
import type { Ec2Request } from './request.ts';
import { ACCOUNT } from './rows.ts';
import { binned, type Shape, snapshot, toXml, volume } from './shapes.ts';

/** EC2's limits on tags: of a resource, and of the resources of one call. */
const MAX_TAGS = 50;
const MAX_TAGGED = 1000;

function isBusy(region: Region, id: string): boolean {
  return (region.busyUntilMs.get(id) ?? 0) > region.world.clock.now().getTime();
}

export function deleteVolume(region: Region, id: string): void {
  const row = region.volumes.get(id);
  if (!row) throw notFound.volume(id);
  if (row.Operator?.Managed) throw notPermitted(id);
  const [attachment] = row.Attachments ?? [];
  if (attachment || row.State === 'in-use' || isBusy(region, id)) {
    const holder = attachment?.InstanceId ?? attachment?.AssociatedResource ?? 'an instance';
    throw new Ec2Error('VolumeInUse', `Volume ${id} is currently attached to ${holder}`);
  }
  if (row.State !== 'available') throw new Ec2Error('IncorrectState', `The volume '${id}' is '${row.State}'`);
  region.removeVolume(id);
}

export function deleteEni(region: Region, id: string): void {
  const row = region.enis.get(id);
  if (!row) throw notFound.eni(id);
  if (row.RequesterManaged || row.Operator?.Managed) throw notPermitted(id);
  // The same words for one that is attached and for one that was a moment ago (amazon-vpc-cni-k8s 69, 608, 1223).
  if (row.Attachment || row.Status !== 'available' || isBusy(region, id)) {
    throw new Ec2Error('InvalidParameterValue', `Network interface '${id}' is currently in use.`);
  }
  region.enis.set(id, undefined);
}

function notPermitted(id: string): Ec2Error {
  return new Ec2Error('OperationNotPermitted', `You do not have permission to delete '${id}'`);
}

export function createSnapshot(region: Region, request: Ec2Request): Record<string, unknown> {
  const volumeId = request.required('VolumeId');
  const source = region.volumes.get(volumeId);
  if (!source) throw notFound.volume(volumeId);
  const now = region.world.now();
  const before = region.snapshotAtMs.get(volumeId) ?? Number.NEGATIVE_INFINITY;
  if (now.getTime() - before < region.snapshotGapMs) {
    throw new Ec2Error(
      'SnapshotCreationPerVolumeRateExceeded',
      'The maximum per volume CreateSnapshot request rate has been exceeded. Use an increasing or variable sleep interval between requests.',
    );
  }
  region.snapshotAtMs.set(volumeId, now.getTime());
  const id = region.id('snap');
  const row = {
    SnapshotId: id,
    VolumeId: volumeId,
    State: 'pending' as const,
    StartTime: now,
    OwnerId: ACCOUNT,
    Progress: '0%',
    VolumeSize: source.Size,
    Description: request.text('Description') ?? '',
    Tags: request.tags(),
  };
  region.snapshots.set(id, row);
  region.after(region.snapshotMs, () => {
    // It may have been tagged meanwhile.
    const current = region.snapshots.get(id);
    if (current?.State === 'pending') region.snapshots.set(id, { ...current, State: 'completed', Progress: '100%' });
  });
  return toXml(row, snapshot as Shape<never>);
}

/** Creates a volume, or answers with the one that the same request made before under its ClientToken. */
export function createVolume(region: Region, request: Ec2Request): Record<string, unknown> {
  const token = request.text('ClientToken');
  const made = token === undefined ? undefined : region.clientTokens.get(token);
  if (made && made.fingerprint !== request.fingerprint) {
    throw new Ec2Error(
      'IdempotentParameterMismatch',
      'The client token has been used before with other parameters in the request.',
    );
  }
  const id = made?.id ?? newVolume(region, request);
  if (token !== undefined) region.clientTokens.set(token, { id, fingerprint: request.fingerprint });
  const row = region.volumes.get(id);
  if (!row) throw notFound.volume(id);
  return toXml(row, volume as Shape<never>);
}

function newVolume(region: Region, request: Ec2Request): string {
  const SnapshotId = request.text('SnapshotId');
  const source = SnapshotId === undefined ? undefined : region.snapshots.get(SnapshotId);
  if (SnapshotId !== undefined && !source) throw notFound.snapshot(SnapshotId);
  if (source && source.State !== 'completed')
    throw new Ec2Error('IncorrectState', `Snapshot is in invalid state - ${source.State}`);
  const AvailabilityZone = request.required('AvailabilityZone');
  if (!AvailabilityZone.startsWith(region.name))
    throw new Ec2Error('InvalidZone.NotFound', `The zone '${AvailabilityZone}' does not exist.`);
  const sizeGiB = request.number('Size') ?? source?.VolumeSize;
  if (sizeGiB === undefined)
    throw new Ec2Error('MissingParameter', 'The request must contain the parameter size/snapshot');
  const Iops = request.number('Iops');
  const Throughput = request.number('Throughput');
  const KmsKeyId = request.text('KmsKeyId');
  return region.createVolume(
    { sizeGiB },
    {
      AvailabilityZone,
      VolumeType: (request.text('VolumeType') ?? 'gp2') as 'gp2',
      SnapshotId,
      Tags: request.tags(),
      Encrypted: request.text('Encrypted') === 'true',
      ...(Iops !== undefined && { Iops }),
      ...(Throughput !== undefined && { Throughput }),
      ...(KmsKeyId !== undefined && { KmsKeyId }),
    },
  );
}

/** All of them or, where one is missing or would have too many, none. */
export function createTags(
  region: Region,
  ids: readonly string[],
  tags: readonly { Key: string; Value: string }[],
): void {
  if (ids.length > MAX_TAGGED)
    throw new Ec2Error('InvalidParameterValue', `No more than ${MAX_TAGGED} resources can be tagged in one call`);
  const merged = ids.map((id) => {
    const all = new Map([...tagsOf(region, id), ...tags].map(({ Key = '', Value = '' }) => [Key, Value]));
    if (all.size > MAX_TAGS) throw new Ec2Error('TagLimitExceeded', 'The maximum number of Tags has been reached.');
    return [id, all] as const;
  });
  for (const [id, all] of merged) region.tag(id, Object.fromEntries(all));
}

function tagsOf(region: Region, id: string): readonly Tag[] {
  if (id.startsWith('vol-')) return orThrow(region.volumes.get(id), notFound.volume(id)).Tags ?? [];
  if (id.startsWith('eni-')) return orThrow(region.enis.get(id), notFound.eni(id)).TagSet ?? [];
  if (id.startsWith('snap-')) return orThrow(region.snapshots.get(id), notFound.snapshot(id)).Tags ?? [];
  if (id.startsWith('i-')) return orThrow(region.instances.get(id), notFound.instance(id)).Tags ?? [];
  throw new Ec2Error('InvalidID', `The ID '${id}' is not valid`);
}

function orThrow<T>(row: T | undefined, error: Ec2Error): T {
  if (row === undefined) throw error;
  return row;
}

export function listRecycleBin(region: Region, request: Ec2Request): Record<string, unknown> {
  const ids = request.list('VolumeId');
  const { from, limit } = request.page(ids);
  const held = binOf(region).filter(({ VolumeId = '' }) => ids.length === 0 || ids.includes(VolumeId));
  const item = held.slice(from, from + limit).map((row) => toXml(row, binned as Shape<never>));
  return { volumeSet: { item }, ...(held.length > from + limit && { nextToken: request.tokenOf(from + limit) }) };
}

const OUT_OF_BIN = { RecycleBinEnterTime: undefined, RecycleBinExitTime: undefined };

/** The volume comes back as it was, free. */
export function restoreFromBin(region: Region, id: string): void {
  const row = binOf(region).find(({ VolumeId }) => VolumeId === id);
  if (!row) throw notFound.volume(id);
  region.bin.delete(id);
  region.volumes.set(id, { ...row, State: 'available', ...OUT_OF_BIN });
}

function binOf(region: Region) {
  const now = region.world.clock.now();
  for (const [id, { RecycleBinExitTime = now }] of region.bin) if (RecycleBinExitTime <= now) region.bin.delete(id);
  return [...region.bin.values()];
}
