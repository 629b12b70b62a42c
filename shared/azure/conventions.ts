import type { Attribution, Resource } from '../core/model.ts';
import type { Convention } from '../core/ports.ts';
import { hasTag, tag, tagKeysWithPrefix } from '../core/tags.ts';
import { isVmName } from './arm-id.ts';

const MCM_CLUSTER = 'kubernetes.io-cluster-';
const MCM_ROLE = 'kubernetes.io-role-node';
const CAPZ_CLUSTER = 'sigs.k8s.io_cluster-api-provider-azure_cluster_';
const KARPENTER_CLUSTER = 'karpenter.azure.com_cluster';
const KARPENTER_POOL = 'karpenter.sh_nodepool';

/** Starts of the tag keys, beside the policy's owner tags, that make a resource a candidate. */
export const CANDIDATE_TAG_KEYS: readonly string[] = [MCM_CLUSTER, CAPZ_CLUSTER, KARPENTER_CLUSTER, KARPENTER_POOL];

/** Whether a resource carries any tag that a convention or an owner tag goes by. */
export function isTagged(resource: Resource, ownerTags: readonly string[]): boolean {
  return (
    CANDIDATE_TAG_KEYS.some((key) => tagKeysWithPrefix(resource, key).length > 0) ||
    ownerTags.some((key) => hasTag(resource, key))
  );
}

/**
 * Gardener's machine-controller-manager: `<vm>-nic`, `<vm>-os-disk`, `<vm>-<lun>-data-disk`,
 * `<vm>-<name>-<lun>-data-disk`. Persistent volumes of a shoot may carry the cluster's key, never the node's role.
 */
const gardenerMcm: Convention = {
  name: 'gardener-mcm',
  attribute(resource) {
    const cluster = tagKeysWithPrefix(resource, MCM_CLUSTER)[0];
    if (cluster === undefined || !hasTag(resource, MCM_ROLE)) return [];
    const evidence = `tag ${cluster}, name ${resource.name}`;
    return named(resource, 'gardener-mcm', evidence, cluster, mcmOwners(resource));
  },
};

function mcmOwners({ kind, name }: Resource): string[] {
  if (kind === 'nic') return capture(/^(.+)-nic$/i, name);
  const data = /^(.+)-\d+-data-disk$/i.exec(name)?.[1];
  // The disk's own name may hold dashes too: every VM that it could be of must be gone.
  return data === undefined ? capture(/^(.+)-os-disk$/i, name) : prefixes(data, '-');
}

/** Cluster API's provider for Azure: `<vm>-nic`, `<vm>-nic-<i>`, `<vm>_OSDisk`, `<vm>_<suffix>`. */
const clusterApi: Convention = {
  name: 'cluster-api',
  attribute(resource) {
    const cluster = tagKeysWithPrefix(resource, CAPZ_CLUSTER).find((key) => tag(resource, key) === 'owned');
    if (cluster === undefined) return [];
    const owners =
      resource.kind === 'nic' ? capture(/^(.+)-nic(?:-\d+)?$/i, resource.name) : prefixes(resource.name, '_').slice(1);
    return named(resource, 'cluster-api', `tag ${cluster}=owned, name ${resource.name}`, cluster, owners);
  },
};

/** Karpenter on Azure: VM, NIC and OS disk have one name, `aks-<node claim>`. */
const karpenter: Convention = {
  name: 'karpenter',
  attribute(resource) {
    if (!hasTag(resource, KARPENTER_CLUSTER) || !hasTag(resource, KARPENTER_POOL)) return [];
    const evidence = `tag ${KARPENTER_CLUSTER}=${tag(resource, KARPENTER_CLUSTER)}, name ${resource.name}`;
    return named(resource, 'karpenter', evidence, KARPENTER_CLUSTER, capture(/^(aks-.+)$/i, resource.name));
  },
};

export const conventions: readonly Convention[] = [gardenerMcm, clusterApi, karpenter];

function named(
  resource: Resource,
  evidence: string,
  detail: string,
  clusterTag: string,
  owners: readonly string[],
): Attribution[] {
  const names = [...new Set(owners.map((owner) => owner.toLowerCase()))].filter(isVmName);
  return names.map((value) => ({ ref: { by: 'name', value, place: resource.place, clusterTag }, evidence, detail }));
}

function capture(pattern: RegExp, name: string): string[] {
  const found = pattern.exec(name)?.[1];
  return found === undefined ? [] : [found];
}

/** The text, and everything that remains of it when it is cut at a separator, longest first. */
function prefixes(text: string, separator: string): string[] {
  const parts = text.split(separator);
  return parts.map((_, index) => parts.slice(0, parts.length - index).join(separator)).filter((part) => part !== '');
}
