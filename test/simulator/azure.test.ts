import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ComputeManagementClient } from '@azure/arm-compute';
import { NetworkManagementClient } from '@azure/arm-network';
import { ResourceGraphClient } from '@azure/arm-resourcegraph';
import type { Pipeline } from '@azure/core-rest-pipeline';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { candidateQuery } from '../../shared/azure/resource-graph.ts';
import { type AzureSimulator, SUBSCRIPTION, startAzureSimulator } from '../../simulator/azure/server.ts';
import type { Subscription } from '../../simulator/azure/subscription.ts';
import { World } from '../../simulator/world/world.ts';

const credential = { getToken: () => Promise.reject(new Error('no token goes to loopback')) };
const G = 'shoot--one';
let simulator: AzureSimulator;
let world: World;
let sub: Subscription;
let compute: ComputeManagementClient;
let network: NetworkManagementClient;
let graph: ResourceGraphClient;

beforeEach(async () => {
  world = new World();
  simulator = await startAzureSimulator({ world });
  sub = simulator.subscription();
  const options = { endpoint: simulator.url, allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
  const plain = <T extends { readonly pipeline: Pipeline }>(client: T): T => {
    client.pipeline.removePolicy({ name: 'bearerTokenAuthenticationPolicy' });
    return client;
  };
  compute = plain(new ComputeManagementClient(credential, SUBSCRIPTION, options));
  network = plain(new NetworkManagementClient(credential, SUBSCRIPTION, options));
  graph = plain(new ResourceGraphClient(credential, options));
});
afterEach(() => simulator.close());

const fails = (promise: PromiseLike<unknown>, code: string, statusCode: number) =>
  expect(promise).rejects.toMatchObject({ code, statusCode });
const raw = (path: string, method = 'GET') => fetch(`${simulator.url}${path}`, { method });

describe('ARM', () => {
  it('answers VM, NIC and disks of a machine as the SDKs read them', async () => {
    const made = sub.createVm('vm-1', { dataDisks: 2 });
    const vm = await compute.virtualMachines.get(G, 'VM-1');
    expect(vm).toMatchObject({ id: made.vm, name: 'vm-1', timeCreated: world.now() });
    expect(vm.networkProfile?.networkInterfaces?.[0]?.id).toBe(made.nic);
    expect(vm.storageProfile?.dataDisks?.map(({ managedDisk }) => managedDisk?.id)).toEqual(made.disks.slice(1));
    const disk = await compute.disks.get(G, 'vm-1-os-disk');
    expect(disk).toMatchObject({ diskState: 'Attached', managedBy: made.vm, lastOwnershipUpdateTime: world.now() });
    expect((await network.networkInterfaces.get(G, 'vm-1-nic')).virtualMachine).toEqual({ id: made.vm });
  });

  it('says what is not there in its own words', async () => {
    sub.createGroup(G);
    await fails(compute.virtualMachines.get(G, 'nope'), 'ResourceNotFound', 404);
    await fails(compute.disks.get('nope', 'nope'), 'ResourceGroupNotFound', 404);
    const other = `/subscriptions/00000000-0000-0000-0000-00000000dead/resourceGroups/${G}`;
    expect(await (await raw(`${other}?api-version=1`)).json()).toMatchObject({
      error: { code: 'SubscriptionNotFound' },
    });
    const bare = await raw(sub.groupId(G));
    expect([bare.status, await bare.json()]).toMatchObject([400, { error: { code: 'MissingApiVersionParameter' } }]);
    expect((await raw(`${sub.groupId(G)}?api-version=1`, 'PUT')).status).toBe(405);
    expect((await raw('/subscriptions/x/colours?api-version=1')).status).toBe(404);
  });

  it('lists a group and a subscription in pages', async () => {
    sub.pageSize = 2;
    for (const name of ['a', 'b', 'c', 'd', 'e']) sub.createDisk(name);
    sub.createDisk('f', { group: 'other' });
    sub.createNic('n');
    const names = async (list: AsyncIterable<{ name?: string }>) =>
      (await Array.fromAsync(list)).map(({ name }) => name);
    expect(await names(compute.disks.listByResourceGroup('Shoot--ONE'))).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await names(compute.disks.list())).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(await names(network.networkInterfaces.list(G))).toEqual(['n']);
    expect(await names(network.networkInterfaces.listAll())).toEqual(['n']);
    await expect(Array.fromAsync(compute.disks.listByResourceGroup('none'))).rejects.toMatchObject({
      code: 'ResourceGroupNotFound',
    });
  });

  it('deletes in a long-running operation that the SDK follows, and answers 204 for what is gone', async () => {
    const id = sub.createDisk('a');
    sub.pace.disk.retryAfterS = 0;
    const deletion = compute.disks.delete(G, 'a');
    await deletion.submitted();
    expect(sub.disk(id).properties.provisioningState).toBe('Deleting');
    world.advance(2_000);
    await deletion;
    expect(sub.get(id)).toBeUndefined();
    expect((await raw(`${id}?api-version=1`, 'DELETE')).status).toBe(204);
    expect(world.writes()).toMatchObject([
      { operation: 'Microsoft.Compute/disks/delete', target: id, status: 202, write: true },
      { status: 204 },
    ]);
  });

  it('lets an operation fail at its end, in the status document and at its Location', async () => {
    const id = sub.createDisk('a');
    sub.failAtEnd.set(id.toLowerCase(), { code: 'DiskInUse', message: 'in use' });
    const { headers } = await raw(`${id}?api-version=1`, 'DELETE');
    const status = headers.get('azure-asyncoperation') ?? '';
    const location = headers.get('location') ?? '';
    expect(headers.get('retry-after')).toBe('2');
    expect(await (await fetch(status)).json()).toMatchObject({ status: 'InProgress' });
    expect((await fetch(location)).status).toBe(202);
    world.advance(2_000);
    expect(await (await fetch(status)).json()).toMatchObject({ status: 'Failed', error: { code: 'DiskInUse' } });
    expect((await fetch(location)).status).toBe(409);
    expect(sub.disk(id).properties.provisioningState).toBe('Failed');
  });

  it('reserves a NIC for 180 seconds after its VM, with the text that says so', async () => {
    const { vm, nic } = sub.createVm('vm-1');
    await fails(network.networkInterfaces.delete(G, 'vm-1-nic'), 'NicInUse', 400);
    sub.deleteVm(vm);
    world.advance(179_000);
    await expect(network.networkInterfaces.delete(G, 'vm-1-nic')).rejects.toMatchObject({
      code: 'NicReservedForAnotherVm',
      statusCode: 400,
      message: `Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: ${vm}`,
    });
    world.advance(1_000);
    expect((await raw(`${nic}?api-version=1`, 'DELETE')).status).toBe(202);
  });

  it("refuses to delete what is in use, exported, or a private endpoint's", async () => {
    sub.createVm('vm-1');
    sub.createDisk('sas', { properties: { diskState: 'ActiveSAS' } });
    sub.createPrivateEndpointNic('pe');
    await expect(compute.disks.delete(G, 'vm-1-os-disk')).rejects.toMatchObject({
      code: 'OperationNotAllowed',
      statusCode: 409,
      message: expect.stringMatching(/^Disk vm-1-os-disk is attached to VM .*\/vm-1\.$/),
    });
    await fails(compute.disks.delete(G, 'sas'), 'OperationNotAllowed', 409);
    await fails(network.networkInterfaces.delete(G, 'pe'), 'NicInUseWithPrivateEndpoint', 400);
  });

  it('deletes a disk whose attach is in flight, as Azure does', async () => {
    const { vm } = sub.createVm('vm-1');
    const disk = sub.createDisk('a');
    sub.attachDisk(disk, vm, 10_000);
    expect(await compute.disks.get(G, 'a')).toMatchObject({ diskState: 'Unattached' });
    expect((await raw(`${disk}?api-version=1`, 'DELETE')).status).toBe(202);
    world.advance(10_000);
    expect(sub.get(disk)).toBeUndefined();
    const slow = sub.createDisk('b');
    sub.attachDisk(slow, vm);
    sub.detachDisk(slow, 5_000);
    expect(sub.disk(slow).properties.diskState).toBe('Attached');
    world.advance(5_000);
    expect(sub.disk(slow)).toMatchObject({ managedBy: undefined, properties: { diskState: 'Unattached' } });
  });

  it('inherits locks and deny assignments, and knows what no role grants', async () => {
    sub.createDisk('a');
    sub.createDisk('b', { group: 'other' });
    sub.lock(`/subscriptions/${SUBSCRIPTION}/resourceGroups/OTHER`);
    await fails(compute.disks.delete('other', 'b'), 'ScopeLocked', 409);
    sub.deny(sub.groupId(G));
    await fails(compute.disks.delete(G, 'a'), 'DenyAssignmentAuthorizationFailed', 403);
    sub.denied.add('Microsoft.Compute/disks/read');
    await fails(compute.disks.get(G, 'a'), 'AuthorizationFailed', 403);
    const locks = await raw(`${sub.groupId('other')}/providers/Microsoft.Authorization/locks?api-version=1`);
    expect(await locks.json()).toMatchObject({ value: [{ properties: { level: 'CanNotDelete' } }] });
  });

  it('deletes a group unless a leftover blocks it', async () => {
    const { vm, nic, disks } = sub.createVm('vm-1');
    const url = `${sub.groupId(G)}?api-version=1`;
    const status = async () => {
      const { headers } = await raw(url, 'DELETE');
      world.advance(30_000);
      return (await fetch(headers.get('azure-asyncoperation') ?? '')).json();
    };
    sub.deleteVm(vm);
    const blocked = { code: 'ResourceGroupDeletionBlocked', message: expect.stringContaining(nic) };
    expect(await status()).toMatchObject({ status: 'Failed', error: blocked });
    for (const id of [nic, ...disks]) sub.remove(id);
    sub.createVm('vm-2');
    expect(await (await raw(url)).json()).toMatchObject({ id: sub.groupId(G) });
    expect(await status()).toMatchObject({ status: 'Succeeded' });
    expect((await raw(url)).status).toBe(404);
    expect(sub.names()).toEqual([]);
  });

  it("throttles by ARM's buckets and says for how long", async () => {
    simulator.throttle();
    sub.createGroup(G);
    const gone = `${sub.groupId(G)}/providers/Microsoft.Compute/disks/none?api-version=1`;
    const statuses = await Promise.all(Array.from({ length: 205 }, async () => (await raw(gone, 'DELETE')).status));
    expect(statuses.filter((one) => one === 204)).toHaveLength(200);
    const refused = await raw(gone, 'DELETE');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    const read = await raw(`${sub.groupId(G)}?api-version=1`);
    expect(read.headers.get('x-ms-ratelimit-remaining-subscription-reads')).toBe('249');
    world.advance(1_000);
    expect((await raw(gone, 'DELETE')).status).toBe(204);
  });

  it('varies the casing of ids when asked to', async () => {
    const id = sub.createDisk('Disk-A');
    sub.casing = 'upper';
    expect((await compute.disks.get(G, 'Disk-A')).id).toBe(id.replace(G, G.toUpperCase()));
    sub.casing = 'lower';
    expect((await compute.disks.get(G, 'Disk-A')).id).toBe(id.toLowerCase());
  });

  it('suffers every fault of the world', async () => {
    const id = sub.createDisk('a');
    sub.createDisk('b');
    const action = 'Microsoft.Compute/disks/read';
    const error = { kind: 'error', status: 503, code: 'ServiceUnavailable', message: 'later' } as const;
    world.faults.inject(action, error, { times: 1, target: /\/a$/ });
    await fails(compute.disks.get(G, 'a'), 'ServiceUnavailable', 503);
    world.faults.inject(action, { kind: 'partial' }, { times: 2 });
    expect(await Array.fromAsync(compute.disks.listByResourceGroup(G))).toHaveLength(1);
    expect((await compute.disks.get(G, 'a')).diskState).toBeUndefined();
    for (const kind of ['drop', 'cut'] as const) {
      world.faults.inject(action, { kind }, { times: 1 });
      await expect((async () => (await raw(`${id}?api-version=1`)).text())()).rejects.toThrow();
    }
    world.faults.inject(action, { kind: 'empty' }, { times: 1 });
    expect(await (await raw(`${id}?api-version=1`)).text()).toBe('');
    world.faults.inject(action, { kind: 'hang' }, { times: 1 });
    const hung = fetch(`${simulator.url}${id}?api-version=1`, { signal: AbortSignal.timeout(50) });
    await expect(hung).rejects.toThrow('timeout');
  });
});

describe('Resource Graph', () => {
  const ask = (query: string, options: object = {}, subscriptions = [SUBSCRIPTION]) =>
    graph.resources({ subscriptions, query, options: { resultFormat: 'objectArray', ...options } });
  const names = (data: unknown) => (data as { id: string }[]).map(({ id }) => id.split('/').at(-1));
  const query = candidateQuery(['microsoft.network/networkinterfaces', 'microsoft.compute/disks'], {
    ownerTags: ['gleaner-owner'],
  });

  it("names the free and tagged by the adapters' own query, in the order of ids", async () => {
    const { vm } = sub.createVm('vm-2');
    sub.createVm('vm-1');
    sub.createDisk('untagged', { tags: {} });
    sub.createDisk('owned', { tags: { 'Gleaner-Owner': 'vm-9' } });
    sub.createDisk('exported', { properties: { diskState: 'ActiveSAS' } });
    sub.deleteVm(vm);
    const answer = await ask(query);
    expect(names(answer.data)).toEqual(['owned', 'vm-2-0-data-disk', 'vm-2-os-disk', 'vm-2-nic']);
    expect(answer).toMatchObject({ totalRecords: 4, count: 4, resultTruncated: 'false', skipToken: undefined });
    const one = await ask(candidateQuery(['microsoft.compute/disks'], { ownerTags: [], cluster: 'it\'s "x" \\ (' }));
    expect(one.totalRecords).toBe(0);
  });

  it('gives pages by its token, a thousand rows at the most', async () => {
    for (let index = 0; index < 1001; index += 1) sub.createDisk(`d-${index}`);
    const first = await ask(query, { top: 5000 });
    expect([first.count, first.totalRecords]).toEqual([1000, 1001]);
    const second = await ask(query, { top: 5000, skipToken: first.skipToken });
    expect([second.count, second.skipToken]).toEqual([1, undefined]);
    await fails(ask(query, { skipToken: 'bogus' }), 'BadRequest', 400);
  });

  it.each([
    'resourcecontainers',
    'resources | where',
    'resources | summarize count()',
    "resources | where colour =~ 'x'",
    "resources | where properties.diskState =~ 'Unattached'",
    "resources | where type =~ 'x' | join kind=leftanti (resources) on id",
    "resources | where type matches regex 'x'",
    'resources | project id | order bi id',
    "resources | where (type =~ 'x'",
    'resources | where type =~ unquoted',
    'resources; drop',
  ])('refuses %s', async (wrong) => {
    await expect(ask(wrong)).rejects.toMatchObject({
      code: 'BadRequest',
      statusCode: 400,
      details: { error: { code: 'BadRequest', details: [{ code: 'InvalidQuery' }, { code: 'ParserFailure' }] } },
    });
  });

  it.each([
    ["where name == 'B'", []],
    ["where name =~ 'B'", ['b']],
    ["where name != 'b' and not(name startswith 'C')", ['a']],
    ["where name !~ 'B' | take 1", ['a']],
    ["where name endswith 'c' or name in_place", undefined],
    ['where isnotempty(tostring(tags.t)) | project id, name | order by name desc', ['b', 'a']],
    ['where isempty(tostring(tags.t))', ['c']],
    ["where tostring(tags) contains 'ONE'", ['a']],
  ])('%s', async (steps, expected) => {
    sub.createDisk('a', { tags: { t: 'one' } });
    sub.createDisk('b', { tags: { t: 'two' } });
    sub.createDisk('c', { tags: {} });
    if (expected) expect(names((await ask(`resources | ${steps}`)).data)).toEqual(expected);
    else await fails(ask(`resources | ${steps}`), 'BadRequest', 400);
  });

  it('notices changes in their order: one that it heard of late never undoes a later one', async () => {
    sub.graphLagMs = 60_000;
    const id = sub.createDisk('a');
    sub.graphLagMs = 0;
    sub.remove(id);
    world.advance(60_000);
    expect((await ask(query)).count).toBe(0);
  });

  it('lags behind, leaves out, is cut off, and counts its queries', async () => {
    sub.graphLagMs = 60_000;
    const id = sub.createDisk('a');
    sub.createDisk('b');
    expect((await ask(query)).count).toBe(0);
    world.advance(60_000);
    expect((await ask(query)).count).toBe(2);
    simulator.graph.truncateAt = 1;
    expect(await ask(query)).toMatchObject({ count: 1, resultTruncated: 'true', totalRecords: 2 });
    simulator.graph.truncateAt = undefined;
    simulator.graph.hidden.add(id.toLowerCase());
    expect(names((await ask(query)).data)).toEqual(['b']);
    simulator.graph.quota = 1;
    world.advance(5_000);
    let left: string | undefined;
    const onResponse = (answer: { headers: { get(name: string): string | undefined } }) => {
      left = answer.headers.get('x-ms-user-quota-remaining');
    };
    await graph.resources({ subscriptions: [SUBSCRIPTION], query }, { onResponse });
    expect(left).toBe('0');
    await fails(ask(query), 'RateLimiting', 429);
    await fails(ask(query, {}, ['00000000-0000-0000-0000-00000000dead']), 'RateLimiting', 429);
  });
});

describe('Event Grid', () => {
  it('delivers in both schemas, ids in varying case, with the personal data that Azure sends along', () => {
    const grid: unknown[] = [];
    const cloud: unknown[] = [];
    simulator.events.listen((delivery) => grid.push(...(delivery as unknown[])));
    simulator.events.listen((delivery) => cloud.push(delivery), 'CloudEventSchemaV1_0');
    const { vm } = sub.createVm('Vm-1');
    sub.deleteVm(vm);
    expect(grid).toMatchObject([
      { eventType: 'Microsoft.Resources.ResourceWriteSuccess', data: { resourceUri: vm.toUpperCase() } },
      {
        eventType: 'Microsoft.Resources.ResourceDeleteSuccess',
        data: {
          resourceUri: vm.toLowerCase(),
          operationName: 'Microsoft.Compute/virtualMachines/delete',
          claims: { name: 'Erika Mustermann' },
        },
      },
    ]);
    expect(cloud).toMatchObject([{ specversion: '1.0' }, { type: 'Microsoft.Resources.ResourceDeleteSuccess' }]);
  });

  it('loses, doubles, delays and reorders', () => {
    const seen: unknown[] = [];
    simulator.events.listen((delivery) =>
      seen.push((delivery as { data: { operationName: string } }[])[0]?.data.operationName),
    );
    simulator.events.faults.lose = ({ vmId }) => vmId.endsWith('lost');
    simulator.events.faults.delaysMs = ({ change }) => (change === 'write' ? [9_000] : [1_000, 2_000]);
    sub.createVm('lost');
    const { vm } = sub.createVm('vm-1');
    sub.deleteVm(vm);
    expect(seen).toEqual([]);
    world.advance(10_000);
    expect(seen.map((name) => String(name).split('/').at(-1)?.toLowerCase())).toEqual(['delete', 'delete', 'write']);
  });
});

const MODELS = resolve(process.env.MODELS_DIR ?? resolve(import.meta.dirname, '../../../shared/models'), 'azure');
if (!existsSync(MODELS)) console.warn(`skipped: no ARM models at MODELS_DIR (${MODELS})`);

describe.skipIf(!existsSync(MODELS))('its answers, held against the API models', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  const compiled = (file: string) => ajv.compile(JSON.parse(readFileSync(resolve(MODELS, file), 'utf8')) as object);

  /** Validates the bodies of an action's good answers, those of lists one by one. */
  function strange(action: string, validate: ValidateFunction): { bodies: number; errors: unknown[] } {
    const bodies = simulator.answers
      .filter((one) => one.action === action && one.status === 200)
      .map(({ body }) => JSON.parse(body) as { value?: unknown[] })
      .flatMap((body) => body.value ?? [body]);
    const errors = bodies.flatMap((body) => (validate(body) ? [] : (validate.errors ?? [])));
    return {
      bodies: bodies.length,
      errors: errors.map(({ instancePath, message, params }) => ({ instancePath, message, params })),
    };
  }

  it('is as ARM describes disks, NICs and VMs', async () => {
    const { vm } = sub.createVm('vm-1', { dataDisks: 2, cascade: true });
    sub.deleteVm(sub.createVm('vm-2').vm);
    sub.createPrivateEndpointNic('pe');
    sub.createDisk('asr-ASRReplica', { tags: {}, properties: { maxShares: 2, diskState: 'Reserved' } });
    await Array.fromAsync(compute.disks.listByResourceGroup(G));
    await Array.fromAsync(network.networkInterfaces.list(G));
    await compute.disks.get(G, 'vm-1-os-disk');
    await network.networkInterfaces.get(G, 'vm-1-nic');
    await compute.virtualMachines.get(G, 'vm-1');
    expect(sub.vm(vm).properties.provisioningState).toBe('Succeeded');
    expect(strange('Microsoft.Compute/disks/read', compiled('disk-2026-03-02.schema.json'))).toEqual({
      bodies: 7,
      errors: [],
    });
    const nics = strange(
      'Microsoft.Network/networkInterfaces/read',
      compiled('network-interface-2025-09-01.schema.json'),
    );
    expect(nics).toEqual({ bodies: 4, errors: [] });
    const vms = strange('Microsoft.Compute/virtualMachines/read', compiled('virtual-machine-2026-04-01.schema.json'));
    expect(vms).toEqual({ bodies: 1, errors: [] });
  });

  it('and would show what ARM does not have', () => {
    const validate = compiled('disk-2026-03-02.schema.json');
    expect(validate({ ...sub.disk(sub.createDisk('a')), colour: 'blue' })).toBe(false);
  });
});
