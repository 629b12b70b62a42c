import type { Resource } from '../core/model.ts';
import { hasTag, tagKeysWithPrefix } from '../core/tags.ts';

/**
 * Tag keys as plain data, free of any SDK: the adapters attribute by them, and the IAM policies are made from them, since
 * IAM can condition on exact keys only.
 */
export const INSTANCE_ID_TAG = 'node.k8s.amazonaws.com/instance_id';
export const NODE_ROLE_TAG = 'kubernetes.io/role/node';
export const MACHINE_NAME_TAG = 'MachineName';
/** Amazon VPC CNI: a person's own ENI. */
export const NO_MANAGE_TAG = 'node.k8s.amazonaws.com/no_manage';
export const CLUSTER_TAG_PREFIX = 'kubernetes.io/cluster/';
export const CAPA_CLUSTER_TAG_PREFIX = 'sigs.k8s.io/cluster-api-provider-aws/cluster/';

/** Exact keys that make a resource a candidate. */
export const CANDIDATE_TAG_KEYS: readonly string[] = [
  NODE_ROLE_TAG,
  INSTANCE_ID_TAG,
  MACHINE_NAME_TAG,
  'karpenter.sh/nodepool',
  'cluster.k8s.amazonaws.com/name',
  'eks:eks-cluster-name',
];

/** Keys that end in a cluster's name. */
export const CANDIDATE_TAG_PREFIXES: readonly string[] = [CLUSTER_TAG_PREFIX, CAPA_CLUSTER_TAG_PREFIX];

/** Keys that forbid deletion whatever their value; the IAM policies deny on them as well. */
export const PROTECTING_TAG_KEYS: readonly string[] = [
  'kubernetes.io/created-for/pvc/name',
  'kubernetes.io/created-for/pv/name',
  'CSIVolumeName',
  'ebs.csi.aws.com/cluster',
  'ebs.csi.eks.amazonaws.com/cluster',
  NO_MANAGE_TAG,
];

/**
 * Whether a resource carries a tag of a known controller or one of the policy's owner tags. On a volume the cluster's key
 * alone is none: people and Terraform put it on static persistent volumes and on data disks of pets, which a node may have
 * held.
 */
export function isCandidate(resource: Pick<Resource, 'tags' | 'kind'>, ownerTags: readonly string[]): boolean {
  const exact = [...CANDIDATE_TAG_KEYS, ...ownerTags].some((key) => hasTag(resource, key));
  const prefixes = resource.kind === 'disk' ? [CAPA_CLUSTER_TAG_PREFIX] : CANDIDATE_TAG_PREFIXES;
  return exact || prefixes.some((prefix) => tagKeysWithPrefix(resource, prefix).length > 0);
}
