import type { Disk } from '@azure/arm-compute';
import type { Hold, Resource, UseState } from '../core/model.ts';
import type { ResourceType } from '../core/ports.ts';
import { type ArmId, DISK_TYPE } from './arm-id.ts';
import { type ArmTypeContext, armType } from './arm-type.ts';
import { diskMonthlyUsd } from './prices.ts';

/** Managed disks, `managed-disk`. */
export function managedDisks(context: ArmTypeContext): ResourceType {
  const compute = () => context.clients.compute();
  return armType<Disk>(
    {
      name: 'managed-disk',
      kind: 'disk',
      armType: DISK_TYPE,
      group: 'Disks',
      client: compute,
      pages: async (resourceGroup, options) =>
        (await compute()).disks.listByResourceGroup(resourceGroup, options).byPage(),
      read: async (id, options) => (await compute()).disks.get(id.resourceGroup, id.name, options),
      remove: async (id, options) => {
        const poller = (await compute()).disks.delete(id.resourceGroup, id.name, options);
        return () => poller.submitted();
      },
      idOf: (disk) => disk.id,
      toResource: toDisk,
    },
    context,
  );
}

/** A disk as ARM shows it. */
export function toDisk(disk: Disk, id: ArmId): Resource {
  const attachedTo = [
    disk.managedBy,
    ...(disk.managedByExtended ?? []),
    ...(disk.shareInfo ?? []).map(({ vmUri }) => vmUri),
  ];
  const tags = disk.tags ?? {};
  return {
    key: id.key,
    id: id.id,
    cloud: 'azure',
    type: 'managed-disk',
    kind: 'disk',
    name: disk.name ?? id.name,
    place: id.place,
    tags,
    tagsIgnoreCase: true,
    state: stateOf(disk, attachedTo.some(Boolean)),
    nativeState: `${disk.diskState ?? 'no diskState'}, ${disk.provisioningState ?? 'no provisioningState'}`,
    attachedTo: [...new Set(attachedTo.filter((one) => one !== undefined && one !== ''))] as string[],
    createdAt: disk.timeCreated,
    // Last attach or detach, or start or stop of its VM; a disk that never had a VM counts from its creation.
    detachedAt: disk.lastOwnershipUpdateTime ?? disk.timeCreated,
    // `Unattached` is also what a disk says while an attach is in flight, and a delete would then succeed.
    needsSecondLook: true,
    holds: holdsOf(disk, tags),
    sizeGiB: disk.diskSizeGB,
    monthlyCostUsd: diskMonthlyUsd({
      sku: disk.sku?.name,
      sizeGiB: disk.diskSizeGB,
      iops: disk.diskIopsReadWrite,
      mbps: disk.diskMBpsReadWrite,
    }),
  };
}

/**
 * Only `Unattached` is free. `Reserved` belongs to a stopped VM, `Frozen` to a hibernated one, `ActiveSAS` is being
 * exported, `ActiveUpload` and `ReadyToUpload` are being filled; a state that is not known is in use as well.
 */
function stateOf(disk: Disk, attached: boolean): UseState {
  if (attached || disk.diskState !== 'Unattached') return 'attached';
  return provisioned(disk.provisioningState);
}

/** `Failed` says that the last operation failed, not that one is running. */
export function provisioned(state: string | undefined): UseState {
  if (state === 'Succeeded' || state === 'Failed') return 'free';
  return state === 'Deleting' ? 'deleting' : 'changing';
}

/** Names and tags of Azure Site Recovery's replica and seed disks, and of Azure Backup's. */
const RECOVERY_NAME = /^ms-asr-|-asrreplica$|^asrseeddisk-/i;
const RECOVERY_TAG = /^ms-asr-|^asrseeddisk-|-asrreplica$|^rsvaultbackup$/i;
/** Written by the in-tree volume plugin and the CSI driver on every persistent volume's disk. */
const PERSISTENT_VOLUME_TAG = /^kubernetes\.io-created-(for-|by)|^k8s-azure-created-by$/i;

function holdsOf(disk: Disk, tags: Readonly<Record<string, string>>): Hold[] {
  const holds: Hold[] = [];
  if (RECOVERY_NAME.test(disk.name ?? '')) holds.push({ code: 'site-recovery', detail: `name=${disk.name}` });
  for (const [key, value] of Object.entries(tags)) {
    if (RECOVERY_TAG.test(key)) holds.push({ code: 'site-recovery', detail: `tag ${key}=${value}` });
    if (PERSISTENT_VOLUME_TAG.test(key)) holds.push({ code: 'persistent-volume', detail: `tag ${key}=${value}` });
  }
  if ((disk.maxShares ?? 1) > 1) holds.push({ code: 'shared-disk', detail: `maxShares=${disk.maxShares}` });
  return holds;
}
