import {
  CreateTagsCommand,
  CreateVolumeCommand,
  type CreateVolumeCommandInput,
  type EC2Client,
  ListVolumesInRecycleBinCommand,
  RestoreVolumeFromRecycleBinCommand,
  type Tag,
  type VolumeType,
} from '@aws-sdk/client-ec2';
import { CloudError, InputError } from '../core/errors.ts';
import type { RestoreResult, RestoreSource } from '../core/ports.ts';
import { called, listOf } from './describe.ts';
import { toCloudError } from './errors.ts';

const LIST_BIN = 'ListVolumesInRecycleBin';

/**
 * Makes a deleted volume again: the volume itself where the Recycle Bin still holds it, else a new one from the snapshot
 * taken before its deletion, with its tags, zone, type and size.
 * @throws InputError when there is neither; CloudError
 */
export async function restoreVolume(
  ec2: EC2Client,
  region: string,
  source: RestoreSource,
  signal: AbortSignal,
): Promise<RestoreResult> {
  const bin = await lookIntoRecycleBin(ec2, source.id, signal);
  if (bin === 'there') {
    const input = { VolumeId: source.id };
    await called('RestoreVolumeFromRecycleBin', () =>
      ec2.send(new RestoreVolumeFromRecycleBinCommand(input), { abortSignal: signal }),
    );
    const Tags = tagList(source.tags);
    if (Tags.length > 0) {
      await called('CreateTags', () =>
        ec2.send(new CreateTagsCommand({ Resources: [source.id], Tags }), { abortSignal: signal }),
      );
    }
    return { id: source.id, from: 'recycle-bin' };
  }
  if (source.snapshotId === undefined) {
    // Without a snapshot the bin is all there is: that it could not be read does not mean that the volume is lost.
    if (bin instanceof CloudError) throw bin;
    throw new InputError(
      'id',
      `${source.id} has no snapshot, and is not in the Recycle Bin of ${region}: it cannot be restored`,
    );
  }
  const input = volumeInput(source, source.snapshotId);
  const made = await called('CreateVolume', () => ec2.send(new CreateVolumeCommand(input), { abortSignal: signal }));
  return { id: made.VolumeId ?? '', from: 'snapshot' };
}

async function lookIntoRecycleBin(
  ec2: EC2Client,
  id: string,
  signal: AbortSignal,
): Promise<'there' | 'absent' | CloudError> {
  try {
    const { Volumes } = await ec2.send(new ListVolumesInRecycleBinCommand({ VolumeIds: [id] }), {
      abortSignal: signal,
    });
    return listOf(Volumes, LIST_BIN).some(({ VolumeId }) => VolumeId === id) ? 'there' : 'absent';
  } catch (cause) {
    const error = toCloudError(cause, LIST_BIN);
    return error.code === 'gone' ? 'absent' : error;
  }
}

/** Without those that only AWS itself may set. */
function tagList(tags: Readonly<Record<string, string>>): Tag[] {
  return Object.entries(tags).flatMap(([Key, Value]) => (/^aws:/i.test(Key) ? [] : [{ Key, Value }]));
}

function volumeInput({ id, tags, restore = {} }: RestoreSource, snapshotId: string): CreateVolumeCommandInput {
  const { availabilityZone, volumeType, sizeGiB, iops, throughput, encrypted, kmsKeyId } = restore;
  if (typeof availabilityZone !== 'string') throw new InputError('id', `the record of ${id} has no availability zone`);
  const takesIops = volumeType === 'gp3' || volumeType === 'io1' || volumeType === 'io2';
  const Tags = tagList(tags);
  return {
    SnapshotId: snapshotId,
    AvailabilityZone: availabilityZone,
    ClientToken: `gleaner-${snapshotId}`,
    TagSpecifications: Tags.length > 0 ? [{ ResourceType: 'volume', Tags }] : undefined,
    VolumeType: typeof volumeType === 'string' ? (volumeType as VolumeType) : undefined,
    Size: typeof sizeGiB === 'number' ? sizeGiB : undefined,
    Iops: takesIops && typeof iops === 'number' ? iops : undefined,
    Throughput: volumeType === 'gp3' && typeof throughput === 'number' ? throughput : undefined,
    Encrypted: encrypted === true ? true : undefined,
    KmsKeyId: encrypted === true && typeof kmsKeyId === 'string' ? kmsKeyId : undefined,
  };
}
