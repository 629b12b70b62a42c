import type { Convention } from '../../core/ports.ts';
import { tag } from '../../core/tags.ts';
import { KARPENTER_CLUSTER_TAG, KARPENTER_POOL_TAG } from '../tags.ts';
import { capture, named } from './named.ts';

/**
 * Karpenter on Azure: VM, NIC and OS disk have one name, `aks-<node claim>`. The prefix is asked for, since any tagged
 * disk has a name, and a name that never was a VM's would look like one that is gone.
 * Source: karpenter-provider-azure, pkg/providers/instance.
 */
export const karpenter: Convention = {
  name: 'karpenter',
  attribute(resource) {
    const cluster = tag(resource, KARPENTER_CLUSTER_TAG);
    const pool = tag(resource, KARPENTER_POOL_TAG);
    if (cluster === undefined || pool === undefined) return [];
    const detail = `tags ${KARPENTER_CLUSTER_TAG}=${cluster}, ${KARPENTER_POOL_TAG}=${pool}`;
    return named(resource, 'karpenter', KARPENTER_CLUSTER_TAG, detail, capture(/^(aks-.+)$/i, resource.name));
  },
};
