import { describe, expect, it } from 'vitest';
import { azure, scopeIdOf } from '../../shared/azure/registry.ts';
import { candidateQuery } from '../../shared/azure/resource-graph.ts';
import type { CloudScope } from '../../shared/core/ports.ts';
import {
  armError,
  diskBody,
  diskId,
  GROUP,
  HastyClock,
  nicBody,
  nicId,
  type Scripted,
  type Seen,
  SUBSCRIPTION,
  scripted,
  vmId,
} from './scripted.ts';
import { drain, FILTER, opened, signal, typeOf } from './support.ts';

const isGraph = ({ path }: Seen) => path.endsWith('/Microsoft.ResourceGraph/resources');
const rows = (ids: readonly string[], extra: object = {}) => ({
  totalRecords: ids.length,
  count: ids.length,
  resultTruncated: 'false',
  facets: [],
  data: ids.map((id) => ({ id })),
  ...extra,
});
const options = (request: Seen) =>
  (JSON.parse(request.body) as { options: Record<string, unknown>; query: string; subscriptions: string[] }).options;

/** ARM answers any disk or NIC by its name, as free and tagged. */
function arm({ path }: Seen): Scripted {
  const name = path.split('/').at(-1) ?? '';
  return { body: path.includes('/disks/') ? diskBody(name) : nicBody(name) };
}

describe('candidates by Resource Graph', () => {
  it('both types by one query, each confirmed by one read', async () => {
    await using at = await opened((request) =>
      isGraph(request) ? { body: rows([diskId('d1'), diskId('d2'), nicId('n1')]) } : arm(request),
    );
    const nics = await drain(at.nics.list(FILTER, signal()));
    const disks = await drain(at.disks.list(FILTER, signal()));
    expect(nics).toMatchObject({ resources: [{ name: 'n1', kind: 'nic', state: 'free' }] });
    expect(disks.resources.map(({ name }) => name)).toEqual(['d1', 'd2']);
    expect(at.scope.calls.counts()).toEqual({ ResourceGraph_Resources: 1, NetworkInterfaces_Get: 1, Disks_Get: 2 });
  });

  it('of several subscriptions by the same query', async () => {
    const other = '99999999-2222-3333-4444-555555555555';
    await using server = await scripted((request) =>
      isGraph(request)
        ? { body: rows([diskId('a'), diskId('b').replace(SUBSCRIPTION, other)]) }
        : { body: { ...diskBody('a'), id: request.path } },
    );
    const { scopes } = await azure({ clock: new HastyClock(), endpoint: server.origin }).open(
      { subscriptions: [SUBSCRIPTION, other.toUpperCase()] },
      signal(),
    );
    const found = [];
    for (const scope of scopes)
      found.push(
        ...(await drain(typeOf(scope, 'managed-disk').list(FILTER, signal()))).resources.map(({ place }) => place),
      );
    expect(found).toEqual([`${SUBSCRIPTION}/shoot--one`, `${other}/shoot--one`]);
    const queries = server.seen.filter(isGraph);
    expect(queries).toHaveLength(1);
    expect((JSON.parse(queries[0]?.body ?? '') as { subscriptions: string[] }).subscriptions).toEqual([
      SUBSCRIPTION,
      other,
    ]);
  });

  it('page by page, with the token of the page before', async () => {
    await using at = await opened((request) => {
      if (!isGraph(request)) return arm(request);
      const token = options(request).$skipToken;
      return {
        body: rows([diskId(token === 't1' ? 'd2' : 'd1')], {
          totalRecords: 2,
          ...(token ? {} : { $skipToken: 't1', resultTruncated: 'true' }),
        }),
      };
    });
    expect((await drain(at.disks.list(FILTER, signal()))).resources.map(({ name }) => name)).toEqual(['d1', 'd2']);
    expect(at.server.seen.filter(isGraph).map((request) => options(request).$top)).toEqual([1000, 1000]);
  });

  it('asked for again ask the cloud again', async () => {
    await using at = await opened((request) => (isGraph(request) ? { body: rows([diskId('d1')]) } : arm(request)));
    await drain(at.disks.list(FILTER, signal()));
    await drain(at.disks.list(FILTER, signal()));
    await drain(at.disks.list({ ...FILTER, cluster: 'shoot--one' }, signal()));
    expect(at.server.seen.filter(isGraph)).toHaveLength(3);
  });

  it('beyond what fits into memory are streamed type by type', async () => {
    await using at = await opened((request) => {
      if (!isGraph(request)) return arm(request);
      const { query } = JSON.parse(request.body) as { query: string };
      if (query.includes('microsoft.compute/disks') && query.includes('microsoft.network')) {
        return { body: rows([diskId('d1')], { totalRecords: 1_000_000, $skipToken: 't1', resultTruncated: 'true' }) };
      }
      return { body: rows([query.includes('microsoft.compute/disks') ? diskId('d1') : nicId('n1')]) };
    });
    expect((await drain(at.nics.list(FILTER, signal()))).resources).toHaveLength(1);
    expect((await drain(at.disks.list(FILTER, signal()))).resources).toHaveLength(1);
    expect(at.server.seen.filter(isGraph)).toHaveLength(3);
  });

  it('waits for its quota by the injected clock', async () => {
    await using at = await opened((request) => {
      if (!isGraph(request)) return arm(request);
      const last = options(request).$skipToken === 't1';
      const headers = { 'x-ms-user-quota-remaining': '0', 'x-ms-user-quota-resets-after': '00:00:05' };
      return {
        headers,
        body: rows([diskId(last ? 'd2' : 'd1')], { totalRecords: 2, ...(last ? {} : { $skipToken: 't1' }) }),
      };
    });
    await drain(at.disks.list(FILTER, signal()));
    expect(at.clock.slept).toEqual([5000]);
  });

  it('that are stale are dropped: attached again, gone, untagged', async () => {
    await using at = await opened((request) => {
      if (isGraph(request)) return { body: rows(['attached', 'gone', 'untagged', 'orphan'].map(diskId)) };
      if (request.path.endsWith('/gone')) return { status: 404, body: armError('ResourceNotFound') };
      if (request.path.endsWith('/attached')) return { body: { ...diskBody('attached'), managedBy: vmId('a') } };
      return request.path.endsWith('/untagged') ? { body: diskBody('untagged', {}, {}) } : arm(request);
    });
    expect(await drain(at.disks.list(FILTER, signal()))).toMatchObject({ resources: [{ name: 'orphan' }] });
  });

  it('that something other than a VM uses are listed, to be kept with the reason', async () => {
    await using at = await opened((request) => {
      if (isGraph(request)) return { body: rows([diskId('exported'), nicId('endpoint')]) };
      return {
        body: request.path.includes('/disks/')
          ? diskBody('exported', { diskState: 'ActiveSAS' })
          : nicBody('endpoint', { privateEndpoint: { id: 'pe' } }),
      };
    });
    expect((await drain(at.disks.list(FILTER, signal()))).resources).toMatchObject([
      { state: 'attached', nativeState: 'ActiveSAS, Succeeded' },
    ]);
    expect((await drain(at.nics.list(FILTER, signal()))).resources).toMatchObject([
      { holds: [{ code: 'private-endpoint' }] },
    ]);
  });

  it.each<[string, Scripted, object]>([
    ['truncated', { body: rows([diskId('d1')], { resultTruncated: 'true' }) }, { nativeCode: 'ResultTruncated' }],
    ['without its second page', { body: rows([diskId('d1')], { totalRecords: 2 }) }, { nativeCode: 'MissingPage' }],
    [
      'with fewer rows than announced',
      { body: rows([diskId('d1')], { totalRecords: 2, count: 2 }) },
      { nativeCode: 'MissingRows' },
    ],
    ['without rows', { body: { totalRecords: 0, count: 0, resultTruncated: 'false' } }, { code: 'unavailable' }],
    ['with a row that is no resource', { body: rows(['x']) }, { code: 'unavailable' }],
    ['empty', {}, { name: 'CloudError' }],
    ['cut off', { body: rows([diskId('d1')]), cut: true }, { code: 'unavailable' }],
    [
      'throttled',
      { status: 429, headers: { 'retry-after': '60' }, body: armError('RateLimiting') },
      { code: 'throttled' },
    ],
    ['denied', { status: 403, body: armError('AuthorizationFailed') }, { code: 'denied' }],
    ['refused', { status: 400, body: armError('BadRequest') }, { code: 'invalid' }],
  ])('%s are incomplete, for every type', async (_, answer, error) => {
    await using at = await opened((request) => (isGraph(request) ? answer : arm(request)));
    for (const type of at.scope.types)
      expect(await drain(type.list(FILTER, signal()))).toMatchObject({ resources: [], error });
  });

  it('whose second page fails are incomplete', async () => {
    await using at = await opened((request) => {
      if (!isGraph(request)) return arm(request);
      if (options(request).$skipToken) return { status: 500, body: armError('InternalServerError') };
      return { body: rows([diskId('d1')], { totalRecords: 2, $skipToken: 't1' }) };
    });
    expect(await drain(at.disks.list(FILTER, signal()))).toMatchObject({ error: { code: 'unavailable' } });
  });

  it('of which one cannot be read are incomplete, after all others', async () => {
    await using at = await opened((request) => {
      if (isGraph(request)) return { body: rows(['d1', 'd2', 'd3'].map(diskId)) };
      return request.path.endsWith('/d1') ? { status: 403, body: armError('AuthorizationFailed') } : arm(request);
    });
    expect(await drain(at.disks.list(FILTER, signal()))).toMatchObject({
      resources: [{ name: 'd2' }, { name: 'd3' }],
      error: { code: 'denied' },
    });
  });

  it('are asked for by types that the filter leaves', async () => {
    await using at = await opened((request) => (isGraph(request) ? { body: rows([]) } : arm(request)));
    await drain(at.nics.list({ ...FILTER, kinds: ['disk'] }, signal()));
    expect(at.server.seen).toEqual([]);
    await drain(at.disks.list({ ...FILTER, kinds: ['disk'] }, signal()));
    expect(at.server.seen.map(({ body }) => body).join()).not.toContain('networkinterfaces');
  });
});

describe('the query', () => {
  it('asks for free and tagged resources, in the order of their ids', () => {
    expect(
      candidateQuery(['microsoft.compute/disks', 'microsoft.network/networkinterfaces'], {
        ownerTags: ["o'wner\\"],
        cluster: 'c1',
      }),
    ).toBe(
      [
        'resources',
        "| where (type =~ 'microsoft.compute/disks' and tostring(properties.diskState) =~ 'Unattached') or (type =~ 'microsoft.network/networkinterfaces' and isempty(tostring(properties.virtualMachine)))",
        "| where tostring(tags) contains 'kubernetes.io-cluster-' or tostring(tags) contains 'sigs.k8s.io_cluster-api-provider-azure_cluster_' or tostring(tags) contains 'karpenter.azure.com_cluster' or tostring(tags) contains 'karpenter.sh_nodepool' or tostring(tags) contains 'o\\'wner\\\\'",
        "| where tostring(tags) contains 'c1'",
        '| project id',
        '| order by id asc',
      ].join('\n'),
    );
  });
});

describe('a resource group', () => {
  const filter = { ...FILTER, resourceGroup: 'Shoot--One' };

  it('is read by ARM alone, all pages', async () => {
    await using at = await opened((request, origin) => {
      if (request.query.has('$skiptoken')) return { body: { value: [diskBody('d2'), diskBody('untagged', {}, {})] } };
      return {
        body: {
          value: [diskBody('d1'), { ...diskBody('used'), managedBy: vmId('a') }],
          nextLink: `${origin}${request.path}?$skiptoken=2&api-version=2026-03-02`,
        },
      };
    });
    expect((await drain(at.disks.list(filter, signal()))).resources.map(({ name }) => name)).toEqual(['d1', 'd2']);
    expect(at.scope.calls.counts()).toEqual({ Disks_ListByResourceGroup: 2 });
  });

  it.each<[string, Scripted, object]>([
    ['that does not exist', { status: 404, body: armError('ResourceGroupNotFound') }, { code: 'gone' }],
    ['that is denied', { status: 403, body: armError('AuthorizationFailed') }, { code: 'denied' }],
    ['without its list', { body: {} }, { name: 'CloudError' }],
    ['with an element without an id', { body: { value: [{ name: 'x' }] } }, { code: 'unavailable' }],
    ['empty', {}, { name: 'CloudError' }],
  ])('%s is incomplete', async (_, answer, error) => {
    await using at = await opened(() => answer);
    for (const type of at.scope.types)
      expect(await drain(type.list(filter, signal()))).toMatchObject({ resources: [], error });
  });

  it('narrows to a cluster', async () => {
    await using at = await opened(() => ({
      body: { value: [nicBody('a'), nicBody('b', {}, { 'kubernetes.io-cluster-other': '1' })] },
    }));
    expect(
      (await drain(at.nics.list({ ...filter, cluster: 'shoot--one' }, signal()))).resources.map(({ name }) => name),
    ).toEqual(['a']);
  });
});

describe('what a VM left', () => {
  const place = `${SUBSCRIPTION}/shoot--one`;
  const elsewhere = diskId('moved').replace('Shoot--One', 'other');

  function group({ path }: Seen): Scripted {
    if (path.toLowerCase().includes('/resourcegroups/other/'))
      return { body: { ...diskBody('moved', {}, {}), id: elsewhere } };
    if (path.endsWith('/networkInterfaces'))
      return { body: { value: [nicBody('VM-7-nic'), nicBody('vm-70-nic'), nicBody('plain', {}, { role: 'x' })] } };
    const disks = [
      diskBody('vm-7-os-disk'),
      diskBody('vm-7-vol-1-data-disk'),
      diskBody('vm-8-os-disk'),
      diskBody('claimed', {}, {}),
      diskBody('x', {}, { 'gleaner-owner': 'VM-7' }),
    ];
    return { body: { value: disks } };
  }

  it('is found by convention, claim and tag, by one list of each type', async () => {
    await using at = await opened(group);
    const claimed = [diskId('claimed'), elsewhere].map((id) => ({
      id,
      key: `azure:${id.toLowerCase()}`,
      kind: 'disk' as const,
    }));
    const vm = { id: vmId('vm-7').toUpperCase(), place, claimed };
    const nics = await at.nics.find(vm, signal());
    const disks = await at.disks.find(vm, signal());
    expect(nics.map(({ name }) => name)).toEqual(['VM-7-nic']);
    expect(disks.map(({ name }) => name)).toEqual(['vm-7-os-disk', 'vm-7-vol-1-data-disk', 'claimed', 'x', 'moved']);
    expect(at.scope.calls.counts()).toEqual({
      NetworkInterfaces_ListByResourceGroup: 1,
      Disks_ListByResourceGroup: 1,
      Disks_Get: 1,
    });
  });

  it('by name, in the resource group of the request', async () => {
    await using at = await opened(group, {}, { subscriptions: [SUBSCRIPTION], resourceGroup: 'Shoot--One' });
    expect(await at.nics.find({ id: 'vm-7', place: '', claimed: [] }, signal())).toHaveLength(1);
  });

  it('is nothing where the group is gone, and an error where it cannot be read', async () => {
    await using gone = await opened(() => ({ status: 404, body: armError('ResourceGroupNotFound') }));
    expect(await gone.disks.find({ id: vmId('vm-7'), place, claimed: [] }, signal())).toEqual([]);
    await using denied = await opened(() => ({ status: 403, body: armError('AuthorizationFailed') }));
    await expect(denied.disks.find({ id: vmId('vm-7'), place, claimed: [] }, signal())).rejects.toMatchObject({
      code: 'denied',
    });
  });
});

it('a scope knows its own ids, and no others', async () => {
  await using at = await opened(() => ({}));
  const scope: CloudScope = at.scope;
  expect(scope.identify(diskId('d').toUpperCase())).toEqual({
    id: diskId('d').toUpperCase(),
    key: `azure:${diskId('d').toLowerCase()}`,
    type: 'managed-disk',
  });
  expect(scope.identify(nicId('n'))?.type).toBe('network-interface');
  expect(scopeIdOf(nicId('n').toUpperCase())).toBe(scope.id);
  expect(scopeIdOf('vol-1')).toBeUndefined();
  for (const id of [vmId('a'), 'vol-1', GROUP, '', `${nicId('n')}/ipConfigurations/c`])
    expect(scope.identify(id)).toBeUndefined();
});
