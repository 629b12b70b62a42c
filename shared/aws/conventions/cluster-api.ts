import type { Attribution } from '../../core/model.ts';
import type { Convention } from '../../core/ports.ts';
import { tag, tagKeysWithPrefix } from '../../core/tags.ts';
import { isInstanceName } from '../ids.ts';
import { CAPA_CLUSTER_TAG_PREFIX, MACHINE_NAME_TAG } from '../tags.ts';

/**
 * Cluster API's provider for AWS: `sigs.k8s.io/cluster-api-provider-aws/cluster/<n>`=`owned`, `MachineName`=`namespace/name`
 * of the Machine, and `Name` of the AWSMachine, which may be called otherwise; instance, volumes and ENIs carry all three.
 * So `Name` names the owner, and the Machine's name counts beside it. Source: cluster-api-provider-aws, pkg/cloud/services/ec2/instances.go.
 */
export const clusterApi: Convention = {
  name: 'cluster-api',
  attribute(resource) {
    const owned = (key: string) => tag(resource, key) === 'owned';
    const clusters = tagKeysWithPrefix(resource, CAPA_CLUSTER_TAG_PREFIX).filter(owned);
    const machine = tag(resource, MACHINE_NAME_TAG);
    if (machine === undefined) return [];
    const name = tag(resource, 'Name');
    const names = new Set([name, machine.split('/').at(-1)].filter(isInstanceName));
    const pairs = clusters.flatMap((clusterTag) => [...names].map((value) => ({ clusterTag, value })));
    return pairs.map(({ clusterTag, value }): Attribution => {
      const ref = { by: 'name', value, place: resource.place, clusterTag } as const;
      const tags = [name && `Name=${name}`, `${MACHINE_NAME_TAG}=${machine}`, `${clusterTag}=owned`].filter(Boolean);
      return { ref, evidence: 'cluster-api', detail: `tags ${tags.join(', ')}` };
    });
  },
};
