import type { Attribution, Resource } from '../../core/model.ts';
import type { Convention } from '../../core/ports.ts';
import { tag } from '../../core/tags.ts';
import { INSTANCE_ID_TAG } from '../tags.ts';

/**
 * Amazon VPC CNI: tag `node.k8s.amazonaws.com/instance_id` and description `aws-K8S-<instance id>`. Where they disagree
 * both are named, and both must be gone; one of them that is no instance id cannot be looked up, and keeps.
 * Source: amazon-vpc-cni-k8s, pkg/awsutils/awsutils.go.
 */
export const vpcCni: Convention = {
  name: 'vpc-cni',
  attribute(resource) {
    if (resource.kind !== 'nic') return [];
    const tagged = tag(resource, INSTANCE_ID_TAG);
    const described = /^aws-K8S-(.+)$/i.exec(resource.description ?? '')?.[1];
    const found: Attribution[] = [];
    if (tagged !== undefined) found.push(named(resource, tagged, `tag ${INSTANCE_ID_TAG}=${tagged}`));
    if (described !== undefined) found.push(named(resource, described, `description ${resource.description}`));
    return found;
  },
};

function named(resource: Resource, value: string, detail: string): Attribution {
  return { ref: { by: 'id', value: value.toLowerCase(), place: resource.place }, evidence: 'vpc-cni', detail };
}
