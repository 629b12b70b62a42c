import type { Resource } from '../core/model.ts';
import { hasTag, tagKeysWithPrefix } from '../core/tags.ts';

/** Gardener's machine-controller-manager: `kubernetes.io-cluster-<id>`=`1`, on persistent volumes too. Azure allows no `/` in keys. */
export const MCM_CLUSTER_TAG_PREFIX = 'kubernetes.io-cluster-';
/** Gardener's machine-controller-manager, on what belongs to a machine. */
export const MCM_ROLE_TAG = 'kubernetes.io-role-node';
/** Cluster API's provider for Azure: `…_cluster_<n>`=`owned`. */
export const CAPZ_CLUSTER_TAG_PREFIX = 'sigs.k8s.io_cluster-api-provider-azure_cluster_';
export const KARPENTER_CLUSTER_TAG = 'karpenter.azure.com_cluster';
export const KARPENTER_POOL_TAG = 'karpenter.sh_nodepool';

/** Starts of the tag keys, beside the policy's owner tags, that make a resource a candidate. */
export const CANDIDATE_TAG_KEYS: readonly string[] = [
  MCM_CLUSTER_TAG_PREFIX,
  CAPZ_CLUSTER_TAG_PREFIX,
  KARPENTER_CLUSTER_TAG,
  KARPENTER_POOL_TAG,
];

/** Whether a resource carries any tag that a convention or an owner tag goes by. */
export function isCandidate(resource: Resource, ownerTags: readonly string[]): boolean {
  return (
    CANDIDATE_TAG_KEYS.some((key) => tagKeysWithPrefix(resource, key).length > 0) ||
    ownerTags.some((key) => hasTag(resource, key))
  );
}
