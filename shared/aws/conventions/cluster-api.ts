import type { Convention } from '../../core/ports.ts';
import { tag, tagKeysWithPrefix } from '../../core/tags.ts';
import { isInstanceName } from '../ids.ts';
import { CAPA_CLUSTER_TAG_PREFIX, MACHINE_NAME_TAG } from '../tags.ts';

/**
 * Cluster API's provider for AWS: `sigs.k8s.io/cluster-api-provider-aws/cluster/<n>`=`owned`, `MachineName`=`namespace/name`,
 * and the instance's `Name` is the machine's name. Source: cluster-api-provider-aws, pkg/cloud/services/ec2/instances.go.
 */
export const clusterApi: Convention = {
  name: 'cluster-api',
  attribute(resource) {
    const cluster = tagKeysWithPrefix(resource, CAPA_CLUSTER_TAG_PREFIX).find((key) => tag(resource, key) === 'owned');
    const machine = tag(resource, MACHINE_NAME_TAG);
    const name = machine?.split('/').at(-1);
    if (cluster === undefined || !isInstanceName(name)) return [];
    const ref = { by: 'name', value: name, place: resource.place, clusterTag: cluster } as const;
    return [{ ref, evidence: 'cluster-api', detail: `tags ${MACHINE_NAME_TAG}=${machine}, ${cluster}=owned` }];
  },
};
