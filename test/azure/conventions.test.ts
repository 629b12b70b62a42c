import { describe, expect, it } from 'vitest';
import { conventions } from '../../shared/azure/conventions.ts';
import { parseOwnerTag } from '../../shared/azure/owners.ts';
import { diskMonthlyUsd } from '../../shared/azure/prices.ts';
import { isCandidate } from '../../shared/azure/tags.ts';
import type { Resource } from '../../shared/core/model.ts';
import { MCM_TAGS, SUBSCRIPTION, vmId } from './scripted.ts';

const PLACE = `${SUBSCRIPTION}/shoot--one`;
const CAPZ = { 'sigs.k8s.io_cluster-api-provider-azure_cluster_c1': 'owned' };
const KARPENTER = { 'karpenter.azure.com_cluster': 'c1', 'karpenter.sh_nodepool': 'general' };

function resource(kind: Resource['kind'], name: string, tags: Record<string, string>): Resource {
  return {
    key: `azure:${name}`,
    id: name,
    cloud: 'azure',
    type: kind === 'nic' ? 'network-interface' : 'managed-disk',
    kind,
    name,
    place: PLACE,
    tags,
    tagsIgnoreCase: true,
    state: 'free',
    nativeState: 'Unattached',
    attachedTo: [],
    holds: [],
  };
}

const owners = (one: Resource) =>
  conventions.flatMap((convention) => convention.attribute(one)).map(({ ref }) => ref.value);

describe('owners by convention', () => {
  it.each<[string, Resource['kind'], string, Record<string, string>, string[]]>([
    ['gardener-mcm', 'nic', 'vm7-nic', MCM_TAGS, ['vm7']],
    ['gardener-mcm', 'disk', 'vm7-os-disk', MCM_TAGS, ['vm7']],
    ['gardener-mcm', 'disk', 'vm7-0-data-disk', MCM_TAGS, ['vm7']],
    ['gardener-mcm', 'disk', 'vm7-vol-12-data-disk', MCM_TAGS, ['vm7-vol', 'vm7']],
    [
      'gardener-mcm',
      'disk',
      'shoot--one-w-z1-a-0-data-disk',
      MCM_TAGS,
      ['shoot--one-w-z1-a', 'shoot--one-w-z1', 'shoot--one-w'],
    ],
    ['cluster-api', 'nic', 'm1-nic', CAPZ, ['m1']],
    ['cluster-api', 'nic', 'm1-nic-2', CAPZ, ['m1']],
    ['cluster-api', 'disk', 'm1_OSDisk', CAPZ, ['m1']],
    ['cluster-api', 'disk', 'm1_etcddisk', CAPZ, ['m1']],
    ['karpenter', 'nic', 'aks-general-abcde', KARPENTER, ['aks-general-abcde']],
    ['karpenter', 'disk', 'aks-general-abcde', KARPENTER, ['aks-general-abcde']],
  ])('%s: %s %s', (convention, kind, name, tags, expected) => {
    const one = resource(kind, name, tags);
    expect([...owners(one)].sort()).toEqual([...expected].sort());
    const attributions = conventions.flatMap((each) => each.attribute(one));
    expect(attributions.map(({ evidence, ref }) => [evidence, ref.by, ref.place])).toEqual(
      expected.map(() => [convention, 'name', PLACE]),
    );
  });

  it('names and tag keys have no case', () => {
    const tags = { 'Kubernetes.IO-Cluster-Shoot--One': '1', 'KUBERNETES.IO-Role-Node': '1' };
    expect(owners(resource('nic', 'VM7-NIC', tags)).map((one) => one.toLowerCase())).toEqual(['vm7']);
  });

  it.each<[string, Resource['kind'], string, Record<string, string>]>([
    ['a name alone', 'nic', 'vm7-nic', {}],
    ['tags alone', 'nic', 'something', MCM_TAGS],
    ["a disk with a NIC's name", 'disk', 'vm7-nic', MCM_TAGS],
    ['a persistent volume of the cluster', 'disk', 'pvc-1234', { 'kubernetes.io-cluster-shoot--one': '1' }],
    ['a role that is none', 'nic', 'vm7-nic', { ...MCM_TAGS, 'kubernetes.io-role-node': '0' }],
    ['a shared cluster tag', 'nic', 'm1-nic', { 'sigs.k8s.io_cluster-api-provider-azure_cluster_c1': 'shared' }],
    ['half of Karpenter', 'disk', 'aks-general-abcde', { 'karpenter.sh_nodepool': 'general' }],
    ['a disk of another name with Karpenter’s tags', 'disk', 'my-data', KARPENTER],
    ['nothing before the suffix', 'nic', '-nic', MCM_TAGS],
  ])('%s names nobody', (_, kind, name, tags) => {
    expect(owners(resource(kind, name, tags))).toEqual([]);
  });
});

describe('candidates', () => {
  it.each([
    [MCM_TAGS, true],
    [CAPZ, true],
    [KARPENTER, true],
    [{ 'GLEANER-Owner': 'vm7' }, true],
    [{ role: 'x' }, false],
    [{}, false],
  ])('%j: %s', (tags, expected) => {
    expect(isCandidate(resource('nic', 'n', tags), ['gleaner-owner'])).toBe(expected);
  });
});

describe("the owner tag's value", () => {
  const one = resource('nic', 'n', {});
  it('is a name in the resource’s own group', () => {
    expect(parseOwnerTag(' VM-7 ', one)).toEqual({ by: 'name', value: 'vm-7', place: PLACE });
  });
  it('or the id of a VM', () => {
    expect(parseOwnerTag(vmId('VM-7'), one)).toEqual({ by: 'id', value: vmId('vm-7').toLowerCase(), place: PLACE });
  });
  it.each(['', '   ', '/subscriptions/x', 'a/b', 'a b', 'x'.repeat(65), 'vm-', '_vm', 'vm?', vmId('')])(
    '%j keeps',
    (value) => {
      expect(parseOwnerTag(value, one)).toBeUndefined();
    },
  );
});

describe('what a disk costs', () => {
  it.each([
    [{ sku: 'Premium_LRS', sizeGiB: 128 }, 19.71],
    [{ sku: 'Premium_LRS', sizeGiB: 129 }, 38.02],
    [{ sku: 'premium_zrs', sizeGiB: 128 }, 29.57],
    [{ sku: 'StandardSSD_LRS', sizeGiB: 30 }, 2.4],
    [{ sku: 'Standard_LRS', sizeGiB: 1 }, 1.54],
    [{ sku: 'PremiumV2_LRS', sizeGiB: 100, iops: 4000, mbps: 125 }, 13.3],
    [{ sku: 'UltraSSD_LRS', sizeGiB: 10, iops: 100, mbps: 10 }, 9.66],
    [{ sku: 'Premium_LRS', sizeGiB: 99_999 }, undefined],
    [{ sku: 'Something_New', sizeGiB: 1 }, undefined],
    [{ sku: 'Premium_LRS' }, undefined],
    [{ sizeGiB: 5 }, undefined],
  ])('%j: %s', (disk, usd) => {
    expect(diskMonthlyUsd(disk)).toBe(usd);
  });
});
