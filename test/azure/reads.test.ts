import { describe, expect, it } from 'vitest';
import { ownerKey } from '../../shared/core/ports.ts';
import {
  armError,
  diskBody,
  diskId,
  GROUP,
  MCM_TAGS,
  nicBody,
  nicId,
  type Scripted,
  SUBSCRIPTION,
  vmId,
} from './scripted.ts';
import { opened, ref, signal } from './support.ts';

const PLACE = `${SUBSCRIPTION}/shoot--one`;

async function readDisk(properties: object, tags: object = MCM_TAGS, name = 'vm-7-os-disk', top: object = {}) {
  await using at = await opened(() => ({ body: { ...diskBody(name, properties, tags), ...top } }));
  const result = [...(await at.disks.get([ref(diskId(name))], signal())).values()][0];
  if (result?.status !== 'found') throw new Error(JSON.stringify(result));
  return result.resource;
}

async function readNic(properties: object) {
  await using at = await opened(() => ({ body: nicBody('vm-7-nic', properties) }));
  const result = [...(await at.nics.get([ref(nicId('vm-7-nic'))], signal())).values()][0];
  if (result?.status !== 'found') throw new Error(JSON.stringify(result));
  return result.resource;
}

describe('a disk', () => {
  it('that is free, with its times, its size and what it costs', async () => {
    expect(await readDisk({})).toMatchObject({
      key: `azure:${diskId('vm-7-os-disk').toLowerCase()}`,
      id: diskId('vm-7-os-disk'),
      kind: 'disk',
      place: PLACE,
      tags: MCM_TAGS,
      tagsIgnoreCase: true,
      state: 'free',
      attachedTo: [],
      createdAt: new Date('2026-11-01T08:00:00Z'),
      detachedAt: new Date('2026-12-01T09:00:00Z'),
      needsSecondLook: true,
      holds: [],
      sizeGiB: 64,
      monthlyCostUsd: 10.21,
    });
  });

  it('that never had a VM counts from its creation', async () => {
    const disk = await readDisk({ LastOwnershipUpdateTime: undefined });
    expect(disk.detachedAt).toEqual(new Date('2026-11-01T08:00:00Z'));
  });

  it.each([
    'Reserved',
    'Attached',
    'Frozen',
    'ActiveSAS',
    'ActiveSASFrozen',
    'ActiveUpload',
    'ReadyToUpload',
    'SomethingNew',
    undefined,
  ])('in state %s is in use', async (diskState) => {
    expect((await readDisk({ diskState })).state).toBe('attached');
  });

  it.each([
    [{ managedBy: vmId('a') }, {}],
    [{ managedByExtended: [vmId('a')] }, {}],
    [{}, { shareInfo: [{ vmUri: vmId('a') }] }],
  ])('that names who has it (%j) is in use whatever its state says', async (top, properties) => {
    expect(await readDisk(properties, MCM_TAGS, 'd', top)).toMatchObject({
      state: 'attached',
      attachedTo: [vmId('a')],
    });
  });

  it.each([
    ['Updating', 'changing'],
    ['Deleting', 'deleting'],
    ['Failed', 'free'],
    [undefined, 'changing'],
  ])('being provisioned as %s is %s', async (provisioningState, state) => {
    expect((await readDisk({ provisioningState })).state).toBe(state);
  });

  it.each([
    ['d', { 'kubernetes.io-created-for-pvc-name': 'data' }, 'persistent-volume'],
    ['d', { 'Kubernetes.IO-Created-For-PV-Name': 'data' }, 'persistent-volume'],
    ['d', { 'k8s-azure-created-by': 'kubernetes-azure-dd' }, 'persistent-volume'],
    ['ms-asr-1234', {}, 'site-recovery'],
    ['vm-7-os-disk-ASRReplica', {}, 'site-recovery'],
    ['asrseeddisk-x', {}, 'site-recovery'],
    ['d', { RSVaultBackup: 'x' }, 'site-recovery'],
    ['d', { 'ms-asr-source': 'x' }, 'site-recovery'],
  ])('%s %j is held: %s', async (name, tags, code) => {
    expect((await readDisk({}, { ...MCM_TAGS, ...tags }, name)).holds.map((hold) => hold.code)).toEqual([code]);
  });

  it('that several VMs may share is held', async () => {
    expect((await readDisk({ maxShares: 2 })).holds).toEqual([{ code: 'shared-disk', detail: 'maxShares=2' }]);
  });
});

describe('a NIC', () => {
  it('that is free has no time of its own', async () => {
    const nic = await readNic({});
    expect(nic).toMatchObject({
      kind: 'nic',
      state: 'free',
      attachedTo: [],
      holds: [],
      place: PLACE,
      monthlyCostUsd: 0,
    });
    expect(nic.createdAt).toBeUndefined();
    expect(nic.detachedAt).toBeUndefined();
  });

  it('with a VM is attached, even to one that is not named', async () => {
    expect(await readNic({ virtualMachine: { id: vmId('a') } })).toMatchObject({
      state: 'attached',
      attachedTo: [vmId('a')],
    });
    expect(await readNic({ virtualMachine: {} })).toMatchObject({ state: 'attached' });
  });

  it.each([
    ['Updating', 'changing'],
    ['Deleting', 'deleting'],
    ['Failed', 'free'],
    [undefined, 'changing'],
  ])('being provisioned as %s is %s', async (provisioningState, state) => {
    expect((await readNic({ provisioningState })).state).toBe(state);
  });

  it.each([
    [{ privateEndpoint: { id: `${GROUP}/providers/Microsoft.Network/privateEndpoints/pe` } }, 'private-endpoint'],
    [
      { privateLinkService: { id: `${GROUP}/providers/Microsoft.Network/privateLinkServices/pls` } },
      'private-link-service',
    ],
    [{ hostedWorkloads: [`${GROUP}/providers/Microsoft.BareMetal/x/y`] }, 'hosted-workload'],
    [{ workloadType: 'BareMetal' }, 'hosted-workload'],
    [{ linkedResourceType: 'Microsoft.NetApp/volumes' }, 'linked-resource'],
    [{ dscpConfiguration: { id: 'x' } }, 'dscp-configuration'],
    [{ tapConfigurations: [{ id: 'x', name: 'tap' }] }, 'tap-configuration'],
    [
      { ipConfigurations: [{ name: 'c', properties: { privateLinkConnectionProperties: { groupId: 'blob' } } }] },
      'private-endpoint',
    ],
  ])('with %j is held: %s', async (properties, code) => {
    expect((await readNic(properties)).holds.map((hold) => hold.code)).toEqual([code]);
  });

  it('with empty lists of what could hold it is not held', async () => {
    expect((await readNic({ hostedWorkloads: [], tapConfigurations: [], virtualMachine: null })).holds).toEqual([]);
  });
});

describe('reads', () => {
  it.each<[string, Scripted, object]>([
    ['found in another case', { body: diskBody('VM-7-OS-DISK') }, { status: 'found' }],
    ['gone', { status: 404, body: armError('ResourceNotFound') }, { status: 'gone' }],
    ['gone with its group', { status: 404, body: armError('ResourceGroupNotFound') }, { status: 'gone' }],
    ['denied', { status: 403, body: armError('AuthorizationFailed') }, { status: 'failed', error: { code: 'denied' } }],
    ['of a missing subscription', { status: 404, body: armError('SubscriptionNotFound') }, { status: 'failed' }],
    [
      "answered by somebody else's 404",
      { status: 404, body: '<html>', headers: { 'content-type': 'text/html' } },
      { status: 'failed' },
    ],
    ['cut off', { body: diskBody('vm-7-os-disk'), cut: true }, { status: 'failed', error: { code: 'unavailable' } }],
    ['empty', {}, { status: 'failed' }],
    ['an empty object', { body: {} }, { status: 'failed' }],
    ['about another disk', { body: diskBody('other') }, { status: 'failed' }],
    ['never answered', { hang: true }, { status: 'failed', error: { code: 'unavailable' } }],
  ])('%s', async (_, answer, expected) => {
    await using at = await opened(() => answer, { requestTimeoutMs: 100 });
    const read = await at.disks.get([ref(diskId('vm-7-os-disk'))], signal());
    expect([...read.keys()]).toEqual([`azure:${diskId('vm-7-os-disk').toLowerCase()}`]);
    expect([...read.values()][0]).toMatchObject(expected);
  });

  it('one that fails leaves the others alone, and ids of elsewhere are not asked for', async () => {
    await using at = await opened(({ path }) =>
      path.endsWith('/b')
        ? { status: 403, body: armError('AuthorizationFailed') }
        : { body: diskBody(path.split('/').at(-1) ?? '') },
    );
    const elsewhere = diskId('d').replace(SUBSCRIPTION, 'other');
    const read = await at.disks.get([...['a', 'b', 'c'].map((name) => ref(diskId(name))), ref(elsewhere)], signal());
    expect([...read.values()].map(({ status }) => status)).toEqual(['found', 'failed', 'found', 'failed']);
    expect(at.scope.calls.counts()).toEqual({ Disks_Get: 3 });
  });
});

describe('owners', () => {
  const vm = (name: string) => ({
    id: vmId(name).replace('resourceGroups', 'resourcegroups'),
    name,
    location: 'westeurope',
    tags: MCM_TAGS,
    properties: {
      vmId: 'ABCD',
      timeCreated: '2026-12-01T10:00:00Z',
      networkProfile: { networkInterfaces: [{ id: nicId(`${name}-nic`).toUpperCase() }] },
      storageProfile: {
        osDisk: { createOption: 'FromImage', managedDisk: { id: diskId(`${name}-os-disk`) } },
        dataDisks: [{ lun: 0, createOption: 'Attach', managedDisk: { id: diskId(`${name}-0-data-disk`) } }],
      },
    },
  });
  const name = (value: string) => ({ by: 'name' as const, value, place: PLACE });

  it('alive, with what hangs on it, by one read', async () => {
    await using at = await opened(() => ({ body: vm('vm-7') }));
    const found = await at.scope.owners.read({ id: vmId('VM-7'), place: PLACE }, signal());
    expect(found).toMatchObject({
      name: 'vm-7',
      place: PLACE,
      state: 'alive',
      key: `azure:${vmId('vm-7').toLowerCase()}#abcd`,
      createdAt: new Date('2026-12-01T10:00:00Z'),
    });
    expect(found?.attachments.map(({ kind, key }) => [kind, key])).toEqual([
      ['nic', `azure:${nicId('vm-7-nic').toLowerCase()}`],
      ['disk', `azure:${diskId('vm-7-os-disk').toLowerCase()}`],
      ['disk', `azure:${diskId('vm-7-0-data-disk').toLowerCase()}`],
    ]);
    expect(at.scope.calls.counts()).toEqual({ VirtualMachines_Get: 1 });
  });

  it('are asked for once, by whatever name they are known', async () => {
    await using at = await opened(() => ({ body: vm('vm-7') }));
    const refs = [name('VM-7'), name('vm-7'), { by: 'id' as const, value: vmId('vm-7'), place: PLACE }];
    const answers = await at.scope.owners.lookup(refs, signal());
    expect(refs.map((one) => answers.get(ownerKey(one))?.state)).toEqual(['alive', 'alive', 'alive']);
    expect(at.scope.calls.counts()).toEqual({ VirtualMachines_Get: 1 });
  });

  it.each<[string, Scripted, string]>([
    ['ResourceNotFound', { status: 404, body: armError('ResourceNotFound') }, 'gone'],
    ['ResourceGroupNotFound', { status: 404, body: armError('ResourceGroupNotFound') }, 'gone'],
    ['SubscriptionNotFound', { status: 404, body: armError('SubscriptionNotFound') }, 'unknown'],
    [
      'a 404 that is not ARM’s',
      { status: 404, body: 'ResourceNotFound', headers: { 'content-type': 'text/plain' } },
      'unknown',
    ],
    ['a 404 without a body', { status: 404 }, 'unknown'],
    ['403', { status: 403, body: armError('AuthorizationFailed') }, 'unknown'],
    ['throttled', { status: 429, headers: { 'retry-after': '60' } }, 'unknown'],
    ['500', { status: 500, body: armError('ResourceNotFound5xx') }, 'unknown'],
    ['an answer about another VM', { body: vm('other') }, 'unknown'],
    ['an empty answer', {}, 'unknown'],
    ['cut off', { body: vm('vm-7'), cut: true }, 'unknown'],
  ])('%s', async (_, answer, state) => {
    await using at = await opened(() => answer);
    const answers = await at.scope.owners.lookup([name('vm-7')], signal());
    expect(answers.get(ownerKey(name('vm-7')))?.state).toBe(state);
    const read = at.scope.owners.read({ id: vmId('vm-7'), place: PLACE }, signal());
    if (state === 'gone') expect(await read).toBeUndefined();
    else await expect(read).rejects.toMatchObject({ name: 'CloudError' });
  });

  it('that cannot be a VM of this subscription are unknown, without a call', async () => {
    await using at = await opened(() => ({ status: 404, body: armError('ResourceNotFound') }));
    const refs = [
      name(''),
      name('a/b'),
      name('../x'),
      { ...name('vm-7'), place: '' },
      { ...name('vm-7'), place: 'other/group' },
      { by: 'id' as const, value: 'i-123', place: PLACE },
      { by: 'id' as const, value: diskId('d'), place: PLACE },
      { by: 'id' as const, value: vmId('vm-7').replace(SUBSCRIPTION, 'other'), place: PLACE },
    ];
    const answers = await at.scope.owners.lookup(refs, signal());
    expect(refs.map((one) => answers.get(ownerKey(one))?.state)).toEqual(refs.map(() => 'unknown'));
    expect(at.server.seen).toEqual([]);
  });

  it('named without a place are looked up in the resource group of the request', async () => {
    const request = { subscriptions: [SUBSCRIPTION], resourceGroup: 'Shoot--One' };
    await using at = await opened(() => ({ body: vm('vm-7') }), {}, request);
    expect((await at.scope.owners.read({ id: 'vm-7', place: '' }, signal()))?.name).toBe('vm-7');
    await using without = await opened(() => ({ body: vm('vm-7') }));
    await expect(without.scope.owners.read({ id: 'vm-7', place: '' }, signal())).rejects.toMatchObject({
      code: 'invalid',
    });
  });
});
