import type { Convention } from '../core/ports.ts';
import { clusterApi } from './conventions/cluster-api.ts';
import { gardenerMcm } from './conventions/gardener-mcm.ts';
import { karpenter } from './conventions/karpenter.ts';

/** All of them speak: a resource goes only when every owner that any of them names is gone, so their order is of no weight. */
export const conventions: readonly Convention[] = [gardenerMcm, clusterApi, karpenter];
