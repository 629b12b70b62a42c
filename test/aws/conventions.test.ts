import { expect, it } from 'vitest';
import { clusterApi } from '../../shared/aws/conventions/cluster-api.ts';
import { gardenerMcm } from '../../shared/aws/conventions/gardener-mcm.ts';
import { vpcCni } from '../../shared/aws/conventions/vpc-cni.ts';
import type { Resource } from '../../shared/core/model.ts';
import type { Convention } from '../../shared/core/ports.ts';
import { item, REGION } from './scripted.ts';

const CAPA = 'sigs.k8s.io/cluster-api-provider-aws/cluster/c';
const CNI = 'node.k8s.amazonaws.com/instance_id';
const ID = 'i-0123456789abcdef0';

function owners(convention: Convention, tags: Record<string, string>, over: Partial<Resource> = {}): string[] {
  const resource: Resource = {
    ...item('eni-0123456789abcdef0'),
    cloud: 'aws',
    type: 'ec2-network-interface',
    kind: 'nic',
    name: 'x',
    place: REGION,
    tags,
    state: 'free',
    nativeState: 'available',
    attachedTo: [],
    holds: [],
    ...over,
  };
  return convention.attribute(resource).map(({ ref }) => ref.value);
}

it('Cluster API names the AWSMachine and the Machine, which may be called otherwise', () => {
  const machine = { [CAPA]: 'owned', MachineName: 'default/md-0-x' };
  expect(owners(clusterApi, { ...machine, Name: 'md-0-infra-y' })).toEqual(['md-0-infra-y', 'md-0-x']);
  expect(owners(clusterApi, { ...machine, Name: 'md-0-x' })).toEqual(['md-0-x']);
  expect(owners(clusterApi, { [CAPA]: 'owned', Name: 'bastion' })).toEqual([]);
});

it('VPC CNI names what contradicts an instance id too: it cannot be looked up, and so it keeps', () => {
  expect(owners(vpcCni, { [CNI]: 'rewritten' }, { description: `aws-K8S-${ID}` })).toEqual(['rewritten', ID]);
  expect(owners(vpcCni, { [CNI]: ID.toUpperCase() }, { description: 'aws-K8S-?' })).toEqual([ID, '?']);
  expect(owners(vpcCni, {}, { description: `my aws-K8S-${ID}` })).toEqual([]);
});

it('Karpenter’s tags name nobody: only a claim does', () => {
  const karpenter = {
    'kubernetes.io/cluster/c': 'owned',
    'karpenter.sh/nodepool': 'p',
    Name: 'p',
    'eks:eks-cluster-name': 'c',
  };
  for (const convention of [gardenerMcm, clusterApi, vpcCni]) expect(owners(convention, karpenter)).toEqual([]);
});

it('a persistent volume of a Gardener cluster, which has its cluster’s key alone, names nobody', () => {
  const volume = { 'kubernetes.io/cluster/shoot': '1', Name: 'shoot-dynamic-pv-1' };
  expect(owners(gardenerMcm, volume, { kind: 'disk' })).toEqual([]);
});
