import { describe, expect, it } from 'vitest';
import { type AzureOptions, credentialOf, endpointOf } from '../../shared/azure/clients.ts';
import { operationOf } from '../../shared/azure/http.ts';
import { azure } from '../../shared/azure/registry.ts';
import { InputError } from '../../shared/core/errors.ts';
import { diskBody, diskId, HastyClock, nicId, SUBSCRIPTION, vmId } from './scripted.ts';
import { opened, ref, signal } from './support.ts';

describe('the endpoint', () => {
  it.each([
    [undefined, 'https://management.azure.com', 'https://management.azure.com/.default', undefined],
    [
      'https://management.usgovcloudapi.net/',
      'https://management.usgovcloudapi.net',
      'https://management.usgovcloudapi.net/.default',
      'https://login.microsoftonline.us',
    ],
    [
      'https://management.chinacloudapi.cn',
      'https://management.chinacloudapi.cn',
      'https://management.chinacloudapi.cn/.default',
      'https://login.chinacloudapi.cn',
    ],
    ['https://arm.example.org/sub/', 'https://arm.example.org/sub', 'https://arm.example.org/sub/.default', undefined],
  ])('%s', (endpoint, url, scope, authorityHost) => {
    expect(endpointOf({ endpoint })).toEqual({ url, loopback: false, scope, authorityHost });
  });

  it('takes the authority and the audience that it is given', () => {
    expect(
      endpointOf({ authorityHost: 'https://login.example.org', audience: 'https://arm.example.org/' }),
    ).toMatchObject({
      authorityHost: 'https://login.example.org',
      scope: 'https://arm.example.org/.default',
    });
  });

  it.each(['http://127.0.0.1:1234', 'http://localhost:80/', 'http://[::1]:9', 'http://127.9.9.9'])(
    'may be plain on loopback: %s',
    (endpoint) => {
      expect(endpointOf({ endpoint }).loopback).toBe(true);
    },
  );

  it.each([
    'http://management.azure.com',
    'http://10.0.0.1',
    'http://localhost.example.org',
    'http://127.0.0.1.example.org',
    'http://0.0.0.0',
    'ftp://127.0.0.1',
    'https://user:secret@management.azure.com',
    'https://management.azure.com?x=1',
    'management.azure.com',
    '',
  ])('is refused: %j', (endpoint) => {
    expect(() => azure({ clock: new HastyClock(), endpoint })).toThrow(InputError);
  });

  it('refuses a plain authority', () => {
    expect(() => endpointOf({ authorityHost: 'http://login.example.org' })).toThrow(/^authorityHost:/);
  });
});

describe('credentials', () => {
  const credential: AzureOptions['credential'] = {
    getToken: () => {
      throw new Error('asked for a token');
    },
  };

  it('are neither asked for nor sent on loopback', async () => {
    await using at = await opened(() => ({ body: diskBody('d') }), { credential });
    const read = await at.disks.get([ref(diskId('d'))], signal());
    expect([...read.values()][0]?.status).toBe('found');
    expect(at.server.seen.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    const none = credentialOf({ clock: at.clock, credential }, endpointOf({ endpoint: at.server.origin }));
    await expect(none.getToken('x')).rejects.toThrow('no credential');
  });

  it('elsewhere are asked for the token of the endpoint, and what fails there is denied', async () => {
    const asked: unknown[] = [];
    const refusing: AzureOptions['credential'] = {
      getToken: (scopes) => {
        asked.push(scopes);
        return Promise.reject(Object.assign(new Error('no identity here'), { name: 'CredentialUnavailableError' }));
      },
    };
    const cloud = azure({
      clock: new HastyClock(),
      endpoint: 'https://management.usgovcloudapi.net',
      credential: refusing,
    });
    const { scopes } = await cloud.open({ subscriptions: [SUBSCRIPTION] }, signal());
    const read = await scopes[0]?.types[1]?.get([ref(diskId('d'))], signal());
    expect([...(read?.values() ?? [])][0]).toMatchObject({ status: 'failed', error: { code: 'denied' } });
    expect(asked).toEqual([['https://management.usgovcloudapi.net/.default']]);
    expect(scopes[0]?.calls.counts()).toEqual({});
  });
});

describe('a request', () => {
  const cloud = (options: Partial<AzureOptions> = {}) =>
    azure({ clock: new HastyClock(), endpoint: 'http://127.0.0.1:1', ...options });

  it('opens one scope for each subscription', async () => {
    const { scopes, skipped } = await cloud().open({ subscriptions: ['A-1', 'a-1', 'b-2'] }, signal());
    expect(scopes.map(({ id }) => id)).toEqual(['azure:a-1', 'azure:b-2']);
    expect(scopes[0]?.types.map(({ name }) => name)).toEqual(['network-interface', 'managed-disk']);
    expect(skipped).toEqual([]);
  });

  it('may leave the subscription to the deployment, or to the id of the VM', async () => {
    expect((await cloud({ subscriptions: ['a-1'] }).open({}, signal())).scopes.map(({ id }) => id)).toEqual([
      'azure:a-1',
    ]);
    const ids = async (subscriptions?: string[]) =>
      (await cloud().open({ vm: vmId('a'), subscriptions }, signal())).scopes.map(({ id }) => id);
    expect(await ids()).toEqual([`azure:${SUBSCRIPTION}`]);
    expect(await ids(['a-1', SUBSCRIPTION])).toEqual([`azure:${SUBSCRIPTION}`]);
    await expect(ids(['a-1'])).rejects.toThrow(/^vm:/);
  });

  it('of a deployment stays within its subscriptions', async () => {
    const own = cloud({ subscriptions: ['a-1', 'B-2'] });
    await expect(own.open({ subscriptions: ['c-3'] }, signal())).rejects.toMatchObject({ field: 'subscriptions' });
    const { scopes, skipped } = await own.open({ scopeIds: ['azure:b-2', 'azure:c-3'] }, signal());
    expect(scopes.map(({ id }) => id)).toEqual(['azure:b-2']);
    expect(skipped).toEqual([{ scope: 'azure:c-3', reason: 'not a subscription of this deployment' }]);
  });

  it('names scopes by their ids', async () => {
    const { scopes } = await cloud().open({ scopeIds: ['azure:a-1'] }, signal());
    expect(scopes.map(({ id }) => id)).toEqual(['azure:a-1']);
  });

  it.each([
    ['scopeIds', { scopeIds: ['aws:eu-west-1'] }],
    ['scopeIds', { scopeIds: ['azure:'] }],
    ['subscriptions', {}],
    ['subscriptions', { subscriptions: [] }],
    ['subscriptions', { subscriptions: ['../x'] }],
    ['subscriptions', { subscriptions: [''] }],
    ['regions', { subscriptions: ['a'], regions: ['westeurope'] }],
    ['resourceGroup', { subscriptions: ['a'], resourceGroup: 'a/b' }],
    ['resourceGroup', { subscriptions: ['a'], resourceGroup: '' }],
    ['resourceGroup', { subscriptions: ['a'], resourceGroup: 'ends.' }],
    ['vm', { subscriptions: ['a'], vm: diskId('d') }],
  ])('is refused, naming %s: %j', async (field, request) => {
    await expect(cloud().open(request, signal())).rejects.toMatchObject({ name: 'InputError', field });
  });
});

describe('the name of a request', () => {
  const host = 'https://management.azure.com';
  const locations = `${host}/subscriptions/s/providers`;
  it.each([
    ['POST', `${host}/providers/Microsoft.ResourceGraph/resources?api-version=x`, 'ResourceGraph_Resources'],
    ['GET', host + diskId('d'), 'Disks_Get'],
    ['DELETE', host + diskId('d').toUpperCase(), 'Disks_Delete'],
    ['GET', host + nicId('n'), 'NetworkInterfaces_Get'],
    ['DELETE', host + nicId('n'), 'NetworkInterfaces_Delete'],
    ['GET', `${host}${nicId('n').replace(/\/n$/, '')}?$skiptoken=x`, 'NetworkInterfaces_ListByResourceGroup'],
    ['GET', host + vmId('a'), 'VirtualMachines_Get'],
    ['GET', `${locations}/Microsoft.Compute/locations/we/DiskOperations/o`, 'Disks_Poll'],
    ['GET', `${locations}/Microsoft.Network/locations/we/operations/o`, 'NetworkInterfaces_Poll'],
    ['GET', `${host}/anything`, 'Other_GET'],
    ['PUT', host + diskId('d'), 'Disks_PUT'],
  ])('%s %s is %s', (method, url, name) => {
    expect(operationOf(method, url)).toBe(name);
  });
});
