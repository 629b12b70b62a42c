import type { Convention } from '../../core/ports.ts';
import { tag, tagKeysWithPrefix } from '../../core/tags.ts';
import { isInstanceName } from '../ids.ts';
import { CLUSTER_TAG_PREFIX, NODE_ROLE_TAG } from '../tags.ts';

/**
 * Gardener's machine-controller-manager: instance, volumes and ENIs carry the machine's name as `Name`, with
 * `kubernetes.io/cluster/<id>`=`1` and `kubernetes.io/role/node`=`1`. In Gardener the cluster's key alone is on persistent
 * volumes too, so both are asked for. Source: machine-controller-manager-provider-aws, pkg/aws/core.go.
 */
export const gardenerMcm: Convention = {
  name: 'gardener-mcm',
  attribute(resource) {
    const cluster = tagKeysWithPrefix(resource, CLUSTER_TAG_PREFIX).find((key) => tag(resource, key) === '1');
    const name = tag(resource, 'Name');
    if (cluster === undefined || tag(resource, NODE_ROLE_TAG) !== '1' || !isInstanceName(name)) return [];
    const ref = { by: 'name', value: name, place: resource.place, clusterTag: cluster } as const;
    return [{ ref, evidence: 'gardener-mcm', detail: `tags Name=${name}, ${cluster}=1, ${NODE_ROLE_TAG}=1` }];
  },
};
