import type { Attribution } from '../../core/model.ts';
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
    const clusters = tagKeysWithPrefix(resource, CLUSTER_TAG_PREFIX).filter((key) => tag(resource, key) === '1');
    const name = tag(resource, 'Name');
    if (tag(resource, NODE_ROLE_TAG) !== '1' || !isInstanceName(name)) return [];
    // Of several clusters any may be the machine's.
    return clusters.map((clusterTag): Attribution => {
      const ref = { by: 'name', value: name, place: resource.place, clusterTag } as const;
      return { ref, evidence: 'gardener-mcm', detail: `tags Name=${name}, ${clusterTag}=1, ${NODE_ROLE_TAG}=1` };
    });
  },
};
