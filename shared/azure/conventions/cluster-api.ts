import type { Convention } from '../../core/ports.ts';
import { tag, tagKeysWithPrefix } from '../../core/tags.ts';
import { CAPZ_CLUSTER_TAG_PREFIX } from '../tags.ts';
import { capture, named, prefixes } from './named.ts';

/**
 * Cluster API's provider for Azure: `<vm>-nic`, `<vm>-nic-<i>`, `<vm>_OSDisk`, `<vm>_<suffix>`. A suffix may hold
 * underscores: every VM that it could be of must be gone. Source: cluster-api-provider-azure, azure/defaults.go.
 */
export const clusterApi: Convention = {
  name: 'cluster-api',
  attribute(resource) {
    const cluster = tagKeysWithPrefix(resource, CAPZ_CLUSTER_TAG_PREFIX).find((key) => tag(resource, key) === 'owned');
    if (cluster === undefined) return [];
    const { kind, name } = resource;
    const owners = kind === 'nic' ? capture(/^(.+)-nic(?:-\d+)?$/i, name) : prefixes(name, '_').slice(1);
    return named(resource, 'cluster-api', cluster, `tag ${cluster}=owned`, owners);
  },
};
