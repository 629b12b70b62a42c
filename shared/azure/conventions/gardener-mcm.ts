import type { Resource } from '../../core/model.ts';
import type { Convention } from '../../core/ports.ts';
import { tag, tagKeysWithPrefix } from '../../core/tags.ts';
import { MCM_CLUSTER_TAG_PREFIX, MCM_ROLE_TAG } from '../tags.ts';
import { capture, named, prefixes } from './named.ts';

/**
 * Gardener's machine-controller-manager: `<vm>-nic`, `<vm>-os-disk`, `<vm>-<lun>-data-disk`,
 * `<vm>-<name>-<lun>-data-disk`. In Gardener the cluster's key alone is on persistent volumes too, so the node's role is
 * asked for as well. Source: machine-controller-manager-provider-azure, pkg/azure/provider/helpers.
 */
export const gardenerMcm: Convention = {
  name: 'gardener-mcm',
  attribute(resource) {
    const cluster = tagKeysWithPrefix(resource, MCM_CLUSTER_TAG_PREFIX).find((key) => tag(resource, key) === '1');
    if (cluster === undefined || tag(resource, MCM_ROLE_TAG) !== '1') return [];
    const owners = ownersOf(resource, cluster.slice(MCM_CLUSTER_TAG_PREFIX.length));
    return named(resource, 'gardener-mcm', cluster, `tags ${cluster}=1, ${MCM_ROLE_TAG}=1`, owners);
  },
};

function ownersOf({ kind, name }: Resource, cluster: string): string[] {
  if (kind === 'nic') return capture(/^(.+)-nic$/i, name);
  const data = /^(.+)-\d+-data-disk$/i.exec(name)?.[1];
  if (data === undefined) return capture(/^(.+)-os-disk$/i, name);
  // A data disk's own name may hold dashes, as a VM's may: every VM that it could be of must be gone. Gardener's VM
  // names begin with the cluster's, so what is no longer than that is none.
  const inCluster = data.toLowerCase().startsWith(`${cluster.toLowerCase()}-`);
  return prefixes(data, '-').filter((prefix) => !inCluster || prefix.length > cluster.length + 1);
}
