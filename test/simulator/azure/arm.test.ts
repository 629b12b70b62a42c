import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SUBSCRIPTION } from '../../../simulator/azure/server.ts';
import { estate } from '../../azure/estate.ts';
import { MINUTE } from '../../support/run.ts';
import { fails, start } from './clients.ts';

const G = 'shoot--one';
const LOCATION = 'westeurope';
let at: Awaited<ReturnType<typeof start>>;
beforeEach(async () => {
  at = await start();
  at.sub.pace.disk.retryAfterS = 0;
  at.sub.pace.disk.deletionMs = 0;
});
afterEach(() => at.simulator.close());

describe('snapshots, and disks made of them', () => {
  it('keep what a disk held beyond its deletion, and give it back', async () => {
    const tags = { 'kubernetes.io-role-node': '1' };
    const source = at.sub.createDisk('a', { tags, sizeGB: 128 });
    const { uniqueId } = at.sub.disk(source).properties;
    const snapshot = await at.compute.snapshots.createOrUpdate(G, 'a-snap', {
      location: LOCATION,
      tags,
      creationData: { createOption: 'Copy', sourceResourceId: source },
      incremental: true,
    });
    expect(snapshot).toMatchObject({ name: 'a-snap', tags, diskSizeGB: 128, osType: 'Linux', incremental: true });
    await at.compute.disks.delete(G, 'a');
    const disk = await at.compute.disks.createOrUpdate(G, 'a', {
      location: LOCATION,
      tags,
      sku: { name: 'StandardSSD_LRS' },
      zones: ['2'],
      creationData: { createOption: 'Copy', sourceResourceId: snapshot.id ?? '' },
    });
    expect(disk).toMatchObject({ id: source, tags, diskSizeGB: 128, diskState: 'Unattached', zones: ['2'] });
    expect([disk.sku?.name, disk.provisioningState]).toEqual(['StandardSSD_LRS', 'Succeeded']);
    expect([disk.creationData?.sourceUniqueId === snapshot.uniqueId, disk.uniqueId === uniqueId]).toEqual([
      true,
      false,
    ]);
    expect((await at.compute.snapshots.get(G, 'A-SNAP')).provisioningState).toBe('Succeeded');
    expect(await Array.fromAsync(at.compute.snapshots.listByResourceGroup(G))).toHaveLength(1);
    await at.compute.snapshots.delete(G, 'a-snap');
    await fails(at.compute.snapshots.get(G, 'a-snap'), 'ResourceNotFound', 404);
    expect(at.world.writes().map(({ operation }) => operation)).toEqual([
      'Microsoft.Compute/snapshots/write',
      'Microsoft.Compute/disks/delete',
      'Microsoft.Compute/disks/write',
      'Microsoft.Compute/snapshots/delete',
    ]);
  });

  it('read Updating until they are done, and Failed where they fail', async () => {
    at.sub.pace.disk.deletionMs = 5_000;
    const source = at.sub.createDisk('a');
    const snapshots = `${at.sub.groupId(G)}/providers/Microsoft.Compute/snapshots`;
    const put = (name: string, id: string, type = 'snapshots') =>
      at.raw(`${snapshots.replace('snapshots', type)}/${name}?api-version=1`, 'PUT', {
        location: LOCATION,
        properties: { creationData: { createOption: 'Copy', sourceResourceId: id } },
      });
    at.sub.failAtEnd.set(`${snapshots}/bad`.toLowerCase(), { code: 'SnapshotFailed', message: 'no' });
    expect((await put('good', source)).status).toBe(202);
    const bad = await put('bad', source);
    expect((await at.compute.snapshots.get(G, 'good')).provisioningState).toBe('Updating');
    const early = await put('b', `${snapshots}/good`, 'disks');
    expect([early.status, await early.json()]).toMatchObject([
      409,
      { error: { code: 'ReferencedResourceNotProvisioned' } },
    ]);
    at.world.advance(5_000);
    expect((await at.compute.snapshots.get(G, 'good')).provisioningState).toBe('Succeeded');
    expect((await at.compute.snapshots.get(G, 'bad')).provisioningState).toBe('Failed');
    const status = await fetch(bad.headers.get('azure-asyncoperation') ?? '');
    expect(await status.json()).toMatchObject({ status: 'Failed', error: { code: 'SnapshotFailed' } });
    expect((await put('b', `${snapshots}/good`, 'disks')).status).toBe(202);
  });

  it('are refused without a source, without a size, smaller than before, and in what is locked', async () => {
    at.sub.createDisk('a', { sizeGB: 64 });
    const create = (name: string, creationData: object, more: object = {}) =>
      at.compute.disks.createOrUpdate(G, name, { location: LOCATION, ...more, creationData: creationData as never });
    const nothing = `${at.sub.groupId(G)}/providers/Microsoft.Compute/snapshots/none`;
    await fails(create('b', { createOption: 'Copy', sourceResourceId: nothing }), 'NotFound', 404);
    await fails(create('b', { createOption: 'Empty' }), 'InvalidParameter', 400);
    await fails(create('b', { createOption: 'Upload' }), 'InvalidParameter', 400);
    await fails(create('a', { createOption: 'Empty' }, { diskSizeGB: 32 }), 'InvalidParameter', 400);
    await fails(create('b', { createOption: 'Empty' }, { location: undefined }), 'LocationRequired', 400);
    const bare = await at.raw(`${nothing}?api-version=1`, 'PUT');
    expect([bare.status, await bare.json()]).toMatchObject([400, { error: { code: 'InvalidRequestContent' } }]);
    expect(await create('b', { createOption: 'Empty' }, { diskSizeGB: 4 })).toMatchObject({ diskSizeGB: 4 });
    expect(await create('b', { createOption: 'Empty' }, { diskSizeGB: 8, tags: { a: 'b' } })).toMatchObject({
      diskSizeGB: 8,
      tags: { a: 'b' },
    });
    at.sub.lock(at.sub.groupId(G), 'ReadOnly');
    await fails(create('c', { createOption: 'Empty' }, { diskSizeGB: 4 }), 'ScopeLocked', 409);
    expect(at.sub.names()).toEqual(['a', 'b']);
  });

  it('need a right of their own, and draw from a bucket of their own', async () => {
    at.sub.createGroup(G);
    at.simulator.throttle();
    const path = `${at.sub.groupId(G)}/providers/Microsoft.Compute/disks/a?api-version=1`;
    const empty = { location: LOCATION, properties: { creationData: { createOption: 'Empty' }, diskSizeGB: 4 } };
    const answer = await at.raw(path, 'PUT', empty);
    expect(answer.headers.get('x-ms-ratelimit-remaining-subscription-writes')).toBe('199');
    at.sub.denied.add('Microsoft.Compute/disks/write');
    expect((await at.raw(path, 'PUT', empty)).status).toBe(403);
  });
});

describe('a subscription', () => {
  it('tells its state, and is read only when disabled', async () => {
    const id = at.sub.createDisk('a');
    expect(await (await at.raw(`/subscriptions/${SUBSCRIPTION}?api-version=2022-12-01`)).json()).toMatchObject({
      id: `/subscriptions/${SUBSCRIPTION}`,
      subscriptionId: SUBSCRIPTION,
      state: 'Enabled',
    });
    at.sub.state = 'Disabled';
    expect((await at.raw(`${id}?api-version=1`)).status).toBe(200);
    await fails(at.compute.disks.delete(G, 'a'), 'ReadOnlyDisabledSubscription', 409);
    expect((await at.raw(`/subscriptions/${SUBSCRIPTION}?api-version=1`, 'DELETE')).status).toBe(405);
  });

  it('of another tenant is not found, and a proxy has its own 404', async () => {
    const other = await at.raw('/subscriptions/00000000-0000-0000-0000-00000000dead?api-version=1');
    expect([other.status, await other.json()]).toMatchObject([404, { error: { code: 'SubscriptionNotFound' } }]);
    const page = '<html><title>404 Not Found</title></html>';
    const fault = { kind: 'error', status: 404, code: '', message: page } as const;
    at.world.faults.inject('Microsoft.Compute/virtualMachines/read', fault);
    const vm = await at.raw(`${at.sub.groupId(G)}/providers/Microsoft.Compute/virtualMachines/vm?api-version=1`);
    expect([vm.status, vm.headers.get('content-type'), await vm.text()]).toEqual([404, 'text/html', page]);
    // To the SDK it has no code of ARM's, so that nobody can take it for a VM that is gone.
    const error: unknown = await at.compute.virtualMachines.get(G, 'vm').catch((one: unknown) => one);
    expect((error as { statusCode?: number }).statusCode ?? 404).toBe(404);
    expect((error as { code?: string }).code).not.toBe('ResourceNotFound');
  });
});

describe('a resource group', () => {
  it('is blocked by a NIC of another group in its subnet', async () => {
    at.sub.createGroup('net');
    const nic = at.sub.createNic('n', { vnetGroup: 'NET' });
    const path = `${at.sub.groupId('net')}?api-version=1`;
    const end = async () => {
      const { headers } = await at.raw(path, 'DELETE');
      at.world.advance(30_000);
      return (await fetch(headers.get('azure-asyncoperation') ?? '')).json();
    };
    expect(await end()).toMatchObject({
      status: 'Failed',
      error: { code: 'InUseSubnetCannotBeDeleted', message: expect.stringContaining(nic) },
    });
    at.sub.remove(nic);
    expect(await end()).toMatchObject({ status: 'Succeeded' });
    expect((await at.raw(path)).status).toBe(404);
    expect((await at.raw(path, 'DELETE')).status).toBe(404);
  });

  it('lists its VMs, and the subscription all of them', async () => {
    at.sub.pageSize = 1;
    at.sub.createVm('vm-1');
    at.sub.createVm('vm-2');
    at.sub.createVm('vm-3', { group: 'other' });
    const { virtualMachines } = at.compute;
    const names = async (list: AsyncIterable<{ name?: string }>) =>
      (await Array.fromAsync(list)).map(({ name }) => name);
    expect(await names(virtualMachines.list('SHOOT--one'))).toEqual(['vm-1', 'vm-2']);
    expect(await names(virtualMachines.listAll())).toEqual(['vm-1', 'vm-2', 'vm-3']);
  });

  it('is not blocked by a snapshot', async () => {
    const { vm, disks } = at.sub.createVm('vm-1', { cascade: true });
    await at.compute.snapshots.createOrUpdate(G, 's', {
      location: LOCATION,
      creationData: { createOption: 'Copy', sourceResourceId: disks[0] ?? '' },
    });
    at.sub.deleteVm(vm);
    await at.raw(`${at.sub.groupId(G)}?api-version=1`, 'DELETE');
    at.world.advance(30_000);
    expect(at.sub.names()).toEqual([]);
  });
});

describe('scenarios', () => {
  it('stop a VM and start it again: its disks stay its own', async () => {
    const { vm, disks } = at.sub.createVm('vm-1');
    at.world.advance(MINUTE);
    at.sub.deallocateVm(vm);
    const disk = await at.compute.disks.get(G, 'vm-1-os-disk');
    expect(disk).toMatchObject({ diskState: 'Reserved', managedBy: vm, lastOwnershipUpdateTime: at.world.now() });
    await fails(at.compute.disks.delete(G, 'vm-1-os-disk'), 'OperationNotAllowed', 409);
    at.sub.startVm(vm);
    expect(disks.map((id) => at.sub.disk(id).properties.diskState)).toEqual(['Attached', 'Attached']);
  });

  it('fail to make a VM: its NIC is there, reserved for 180 seconds, and nobody hears of it', async () => {
    const heard: unknown[] = [];
    at.simulator.events.listen((delivery) => heard.push(delivery));
    const { vm, nic } = at.sub.failVm('vm-1');
    await fails(at.compute.virtualMachines.get(G, 'vm-1'), 'ResourceNotFound', 404);
    await expect(at.network.networkInterfaces.delete(G, 'vm-1-nic')).rejects.toMatchObject({
      code: 'NicReservedForAnotherVm',
      message: expect.stringContaining(`Reserved VM: ${vm}`),
    });
    at.world.advance(180_000);
    expect((await at.raw(`${nic}?api-version=1`, 'DELETE')).status).toBe(202);
    expect(heard).toEqual([]);
  });

  it.each([
    ['mcm', 'shoot--one-1', ['shoot--one-1-0-data-disk', 'shoot--one-1-nic', 'shoot--one-1-os-disk']],
    ['capi', 'one-md-0-x', ['one-md-0-x-nic', 'one-md-0-x_OSDisk', 'one-md-0-x_data0']],
    ['karpenter', 'aks-default-x1', ['aks-default-x1', 'aks-default-x1']],
  ] as const)(
    'leave what a machine of style %s leaves, under the names that the adapters know',
    async (style, name, left) => {
      await using here = await estate({ grace: '0', minAge: '0', settle: '0' });
      const { vm } = here.sub.createVm(name, { style });
      here.world.advance(24 * 60 * MINUTE);
      here.sub.deleteVm(vm);
      expect(here.sub.names()).toEqual([...left].sort());
      here.world.advance(60 * MINUTE);
      await here.sweepNow({ subscriptions: [SUBSCRIPTION] });
      expect(here.sub.names()).toEqual([]);
    },
  );
});

describe('Resource Graph', () => {
  it('cases ids as ARM does, the same over all pages, and leaves the order by id', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) at.sub.createDisk(name);
    at.sub.casing = 'mixed';
    const query = 'resources | project id | order by id asc';
    const first = await at.ask(query, { top: 4 });
    const second = await at.ask(query, { top: 4, skipToken: first.skipToken });
    const ids = [first, second].flatMap(({ data }) => (data as { id: string }[]).map(({ id }) => id));
    expect(new Set(ids.map((id) => id.slice(0, id.lastIndexOf('/')))).size).toBeGreaterThan(1);
    expect(new Set(ids.map((id) => id.toLowerCase())).size).toBe(6);
    expect(ids).toEqual(ids.toSorted());
  });

  it('asked without subscriptions answers for all, and tells how long its quota takes', async () => {
    await using two = await start({ subscriptions: [SUBSCRIPTION, '22222222-2222-3333-4444-555555555555'] });
    two.sub.createDisk('a');
    two.simulator.subscription('22222222-2222-3333-4444-555555555555').createDisk('b');
    two.simulator.graph.quota = 2;
    expect((await two.ask('resources', {}, [])).count).toBe(2);
    two.world.advance(3_000);
    expect((await two.ask('resources')).count).toBe(1);
    const refused = await two.raw('/providers/Microsoft.ResourceGraph/resources?api-version=1', 'POST', {
      query: 'resources',
    });
    const { headers } = refused;
    expect([
      refused.status,
      ...['retry-after', 'x-ms-user-quota-remaining', 'x-ms-user-quota-resets-after'].map((name) => headers.get(name)),
    ]).toEqual([429, '2', '0', '00:00:02']);
    await fails(two.ask('resources'), 'RateLimiting', 429);
    two.world.advance(2_000);
    expect((await two.ask('resources')).count).toBe(1);
  });
});

const MODEL = resolve(
  process.env.MODELS_DIR ?? resolve(import.meta.dirname, '../../../../shared/models'),
  'azure/disk-2026-03-02.schema.json',
);
if (!existsSync(MODEL)) console.warn(`skipped: no ARM model of disks at ${MODEL}`);

describe.skipIf(!existsSync(MODEL))('disks in every state, held against the API model', () => {
  it('are as ARM describes them', async () => {
    const schema = JSON.parse(readFileSync(MODEL, 'utf8')) as {
      $defs: Record<string, { title?: string; properties?: { diskState?: { 'x-known-values'?: string[] } } }>;
    };
    const properties = Object.values(schema.$defs).find(({ title }) => title === 'DiskProperties');
    const states = properties?.properties?.diskState?.['x-known-values'] ?? [];
    expect(states).toHaveLength(8);
    for (const diskState of states) at.sub.createDisk(diskState, { properties: { diskState } });
    at.sub.createVm('aks-one', { style: 'karpenter' });
    at.sub.deallocateVm(at.sub.createVm('capi-one', { style: 'capi' }).vm);
    await at.compute.disks.createOrUpdate(G, 'made', {
      location: LOCATION,
      zones: ['1'],
      creationData: { createOption: 'Copy', sourceResourceId: at.sub.createDisk('source') },
    });
    const listed = await Array.fromAsync(at.compute.disks.listByResourceGroup(G));
    expect(listed.map(({ diskState }) => diskState)).toEqual(expect.arrayContaining(states));
    const validate = new Ajv2020({ strict: false, allErrors: true }).compile(schema);
    const bodies = at.simulator.answers
      .filter(({ action, status }) => /^Microsoft.Compute\/disks\/(read|write)$/.test(action) && status < 300)
      .flatMap(({ body }) => (JSON.parse(body) as { value?: unknown[] }).value ?? [JSON.parse(body) as unknown]);
    // Those of the list, and of the PUT its first and its last answer.
    expect(bodies.length).toBe(listed.length + 2);
    expect(bodies.flatMap((body) => (validate(body) ? [] : (validate.errors ?? [])))).toEqual([]);
  });
});
