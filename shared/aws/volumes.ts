import {
  DeleteVolumeCommand,
  type DescribeVolumesRequest,
  paginateDescribeVolumes,
  type Volume,
} from '@aws-sdk/client-ec2';
import { chunks } from '../core/chunks.ts';
import type { Hold, Resource, UseState } from '../core/model.ts';
import type { ListFilter, ResourceType, VmIdentity } from '../core/ports.ts';
import { distinct, FILTER_VALUES, filter, listOf, PAGE_SIZE, pagesOf, tagsOf } from './describe.ts';
import { toCloudError } from './errors.ts';
import { isInstanceName, keyOf, VOLUME_TYPE } from './ids.ts';
import { volumeMonthlyCostUsd } from './prices.ts';
import { candidatesOf, membersOnly, type RegionContext, readByIds } from './region-context.ts';
import { restoreVolume } from './restore.ts';
import { snapshotVolume } from './snapshots.ts';

const OPERATION = 'DescribeVolumes';

/** EBS volumes. */
export function ebsVolumes(context: RegionContext): ResourceType {
  const { ec2, region } = context;
  const describe = (input: DescribeVolumesRequest, signal: AbortSignal) => describeVolumes(context, input, signal);
  return {
    name: VOLUME_TYPE,
    kind: 'disk',

    async *list(wanted: ListFilter, signal: AbortSignal) {
      // Free and tagged, filtered by EC2. Which tags, is looked at here: the policy's cluster may be a key or a value, which no
      // one filter says, and moto takes several values of `tag-key` to mean all of them.
      const Filters = [filter('status', ['available']), filter('tag-key', ['*'])];
      for await (const page of describe({ Filters }, signal)) yield candidatesOf(context, page, wanted);
    },

    async find(vm: VmIdentity, signal: AbortSignal) {
      const claimed = vm.claimed.filter(({ kind }) => kind === 'disk').map(({ id }) => id);
      const found: Resource[] = [];
      for (const ids of chunks(claimed, FILTER_VALUES))
        found.push(...(await all(describe({ Filters: [filter('volume-id', ids)] }, signal))));
      // What was claimed is known by id; only of a VM that nobody saw alive are the conventions' names all there is.
      if (claimed.length === 0 && isInstanceName(vm.name)) {
        found.push(...(await all(describe({ Filters: [filter('tag:Name', [vm.name])] }, signal))));
      }
      return membersOnly(context, distinct(found));
    },

    get: (items, signal) =>
      readByIds(items, (ids) => all(describe({ Filters: [filter('volume-id', ids)] }, signal)), OPERATION),

    async delete(resource, signal) {
      try {
        await ec2.send(new DeleteVolumeCommand({ VolumeId: resource.id }), { abortSignal: signal });
      } catch (cause) {
        const error = toCloudError(cause, 'DeleteVolume');
        if (error.code !== 'gone') throw error;
      }
    },

    snapshot: (resource, token, signal) => snapshotVolume(ec2, resource, token, signal),
    restore: (source, signal) => restoreVolume(ec2, region, source, signal),
  };
}

async function* describeVolumes({ ec2, region }: RegionContext, input: DescribeVolumesRequest, signal: AbortSignal) {
  const pages = paginateDescribeVolumes({ client: ec2, pageSize: PAGE_SIZE }, input, { abortSignal: signal });
  for await (const page of pagesOf(OPERATION, pages)) {
    yield listOf(page.Volumes, OPERATION).map((volume) => toResource(region, volume));
  }
}

async function all(pages: AsyncIterable<readonly Resource[]>): Promise<Resource[]> {
  return (await Array.fromAsync(pages)).flat();
}

const STATES: Readonly<Record<string, UseState>> = {
  available: 'free',
  creating: 'changing',
  deleting: 'deleting',
  deleted: 'deleting',
};

function toResource(region: string, volume: Volume): Resource {
  const tags = tagsOf(volume.Tags);
  const id = volume.VolumeId ?? '';
  const attachments = volume.Attachments ?? [];
  // EC2 always lists the attachments, if only as an empty list: where the list is missing, nothing says that it is free.
  const state = volume.Attachments ? (STATES[volume.State ?? ''] ?? 'attached') : 'attached';
  return {
    key: keyOf(region, id),
    id,
    cloud: 'aws',
    type: VOLUME_TYPE,
    kind: 'disk',
    name: tags.Name ?? id,
    place: region,
    tags,
    state: attachments.length > 0 && state === 'free' ? 'attached' : state,
    nativeState: volume.State ?? 'missing',
    // An attachment may lack the instance: then something else of AWS's owns it.
    attachedTo: attachments.map(
      (one) => one.InstanceId ?? one.AssociatedResource ?? one.InstanceOwningService ?? 'unknown',
    ),
    createdAt: volume.CreateTime,
    holds: holdsOf(volume, tags),
    sizeGiB: volume.Size,
    monthlyCostUsd: volumeMonthlyCostUsd(volume.VolumeType, volume.Size),
    restore: restoreFacts(volume),
  };
}

function holdsOf(volume: Volume, tags: Readonly<Record<string, string>>): Hold[] {
  const holds: Hold[] = [];
  if (volume.MultiAttachEnabled) holds.push({ code: 'multi-attach', detail: 'MultiAttachEnabled=true' });
  if (volume.Operator?.Managed)
    holds.push({ code: 'service-managed', detail: `Operator.Managed, ${volume.Operator.Principal ?? ''}` });
  // The in-tree provisioner named its volumes so before it tagged them.
  if (tags.KubernetesCluster !== undefined && /-dynamic-/.test(tags.Name ?? '')) {
    holds.push({ code: 'persistent-volume', detail: `KubernetesCluster=${tags.KubernetesCluster}, Name=${tags.Name}` });
  }
  return holds;
}

function restoreFacts(volume: Volume): Resource['restore'] {
  const facts = {
    availabilityZone: volume.AvailabilityZone,
    volumeType: volume.VolumeType,
    sizeGiB: volume.Size,
    iops: volume.Iops,
    throughput: volume.Throughput,
    encrypted: volume.Encrypted,
    kmsKeyId: volume.KmsKeyId,
  };
  return Object.fromEntries(
    Object.entries(facts).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
