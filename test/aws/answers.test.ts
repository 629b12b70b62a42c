import { describe, expect, it } from 'vitest';
import type { OwnerRef } from '../../shared/core/model.ts';
import { ownerKey } from '../../shared/core/ports.ts';
import { item, key, REGION, refused, type Said, said, scopeOn, scripted, signal, typeOf } from './scripted.ts';

const VOLUME = 'vol-0123456789abcdef0';
const ENI = 'eni-0123456789abcdef0';
const INSTANCE = 'i-0123456789abcdef0';
const OWNERS: readonly OwnerRef[] = [
  { by: 'id', value: INSTANCE, place: REGION },
  { by: 'name', value: 'machine', place: REGION, clusterTag: 'kubernetes.io/cluster/shoot' },
];
const LISTS: Readonly<Record<string, string>> = {
  DescribeVolumes: 'volumeSet',
  DescribeNetworkInterfaces: 'networkInterfaceSet',
  DescribeInstances: 'reservationSet',
};
const filter = { ownerTags: [] };
const html = '<html><body>Service OK</body></html>';

/** What each way of asking makes of an answer that proves nothing. */
async function asked(answer: (action: string) => Said) {
  await using server = await scripted(({ action }) => answer(action));
  const scope = await scopeOn(server.url);
  const lists = await Promise.allSettled(scope.types.map((type) => Array.fromAsync(type.list(filter, signal()))));
  const finds = await Promise.allSettled(
    scope.types.map((type) => type.find({ id: INSTANCE, place: REGION, name: 'machine', claimed: [] }, signal())),
  );
  const disks = await typeOf(scope, 'disk').get([item(VOLUME)], signal());
  const nics = await typeOf(scope, 'nic').get([item(ENI)], signal());
  const owners = await scope.owners.lookup(OWNERS, signal());
  const read = await Promise.allSettled([scope.owners.read({ id: INSTANCE, place: REGION }, signal())]);
  const settled = [...lists, ...finds, ...read];
  return {
    thrown: settled.map((one) => (one.status === 'rejected' ? one.reason.code : 'answered')),
    reads: [disks.get(key(VOLUME)), nics.get(key(ENI))],
    owners: OWNERS.map((ref) => owners.get(ownerKey(ref))?.state),
    calls: scope.calls.counts(),
  };
}

describe('an answer that is not whole proves nothing', () => {
  it.each<[string, (action: string) => Said, string]>([
    ['lacks its list', (action) => said(action, ''), 'unavailable'],
    ['is another call’s', () => said('DescribeTags', '<tagSet/>'), 'unavailable'],
    ['is no XML of EC2’s', () => ({ body: html }), 'unavailable'],
    ['is empty', () => ({ body: '' }), 'unavailable'],
    ['is cut off', (action) => ({ body: said(action, `<${LISTS[action]}><item>`).body.slice(0, -30) }), 'unavailable'],
    ['leads back to itself', (action) => said(action, `<${LISTS[action]}/><nextToken>same</nextToken>`), 'unavailable'],
    ['is denied', () => refused('UnauthorizedOperation', 403), 'denied'],
    ['is of a region that is off', () => refused('AuthFailure', 401), 'denied'],
    ['is an error that nobody knows', () => refused('SomethingNew'), 'unknown'],
  ])('that %s', async (_, answer, code) => {
    const { thrown, reads, owners } = await asked(answer);
    expect(thrown).toEqual([code, code, code, code, code]);
    expect(reads).toMatchObject([
      { status: 'failed', error: { code } },
      { status: 'failed', error: { code } },
    ]);
    expect(owners).toEqual(['unknown', 'unknown']);
  });

  it('whose second page fails: the first is no complete answer', async () => {
    await using server = await scripted(({ action, parameters }) =>
      parameters.has('NextToken')
        ? refused('UnauthorizedOperation', 403)
        : said(action, `<${LISTS[action]}/><nextToken>more</nextToken>`),
    );
    const scope = await scopeOn(server.url);
    const owners = await scope.owners.lookup(OWNERS, signal());
    expect([...owners.values()].map(({ state }) => state)).toEqual(['unknown', 'unknown']);
    const reads = await typeOf(scope, 'disk').get([item(VOLUME)], signal());
    expect(reads.get(key(VOLUME))).toMatchObject({ status: 'failed', error: { code: 'denied' } });
    await expect(Array.fromAsync(typeOf(scope, 'disk').list(filter, signal()))).rejects.toMatchObject({
      code: 'denied',
    });
  });

  it('whose one batch fails: the others’ answers stand', async () => {
    const ids = Array.from({ length: 201 }, (_, index) => `vol-${String(index).padStart(17, '0')}`);
    await using server = await scripted(({ action, parameters }) =>
      parameters.get('Filter.1.Value.1') === ids[200]
        ? refused('UnauthorizedOperation', 403)
        : said(action, '<volumeSet/>'),
    );
    const scope = await scopeOn(server.url);
    const reads = await typeOf(scope, 'disk').get(ids.map(item), signal());
    const statuses = ids.map((id) => reads.get(key(id))?.status);
    expect(statuses.slice(0, 200).every((status) => status === 'gone')).toBe(true);
    expect(statuses[200]).toBe('failed');
  });

  it('where an instance is listed without a state', async () => {
    const instance = `<item><instanceId>${INSTANCE}</instanceId></item>`;
    await using server = await scripted(({ action }) =>
      said(action, `<reservationSet><item><instancesSet>${instance}</instancesSet></item></reservationSet>`),
    );
    const scope = await scopeOn(server.url);
    const [ref] = OWNERS as [OwnerRef];
    expect((await scope.owners.lookup([ref], signal())).get(ownerKey(ref))).toMatchObject({ state: 'unknown' });
  });

  it('where a volume is listed without its attachments', async () => {
    const volume = `<item><volumeId>${VOLUME}</volumeId><status>available</status></item>`;
    await using server = await scripted(({ action }) => said(action, `<volumeSet>${volume}</volumeSet>`));
    const scope = await scopeOn(server.url);
    const reads = await typeOf(scope, 'disk').get([item(VOLUME)], signal());
    expect(reads.get(key(VOLUME))).toMatchObject({ status: 'found', resource: { state: 'attached' } });
  });
});

describe('requests', () => {
  it('are counted each, with those that the SDK sends again', async () => {
    let left = 2;
    await using server = await scripted(({ action }) => {
      left -= 1;
      return left >= 0 ? refused('RequestLimitExceeded', 503) : said(action, '<volumeSet/>');
    });
    const scope = await scopeOn(server.url);
    await typeOf(scope, 'disk').get([item(VOLUME)], signal());
    expect(scope.calls.counts()).toEqual({ DescribeVolumes: 3 });
    expect(server.seen).toHaveLength(3);
  });

  it('ask the cloud to filter, a thousand a page, and never by the parameter that fails as a whole', async () => {
    await using server = await scripted(({ action }) => said(action, `<${LISTS[action]}/>`));
    const scope = await scopeOn(server.url);
    for (const type of scope.types) {
      await Array.fromAsync(type.list(filter, signal()));
      await type.get([item(VOLUME)], signal());
    }
    await scope.owners.lookup(OWNERS, signal());
    for (const { parameters } of server.seen) {
      expect(parameters.get('MaxResults')).toBe('1000');
      expect([...parameters.keys()].filter((name) => /^(VolumeId|NetworkInterfaceId|InstanceId)\./.test(name))).toEqual(
        [],
      );
    }
    const filters = server.seen.map(({ parameters }) => parameters.get('Filter.1.Name'));
    expect(filters).toEqual(['status', 'network-interface-id', 'status', 'volume-id', 'instance-id', 'tag:Name']);
  });

  it('a delete that is answered late is sent again, and gone is done', async () => {
    let first = true;
    await using server = await scripted(() => {
      if (!first) return refused('InvalidVolume.NotFound');
      first = false;
      return refused('InternalError', 500);
    });
    const scope = await scopeOn(server.url);
    const volume = { ...item(VOLUME) } as never;
    await typeOf(scope, 'disk').delete(volume, signal());
    expect(scope.calls.counts()).toEqual({ DeleteVolume: 2 });
  });

  it.each([
    ['DependencyViolation', 'invalid'],
    ['InvalidParameterValue', 'in-use'],
    ['OperationNotPermitted', 'locked'],
  ])('a delete refused with %s has not happened: %s', async (code, expected) => {
    await using server = await scripted(() => refused(code, 400, `Network interface '${ENI}' is currently in use.`));
    const scope = await scopeOn(server.url);
    const deleting = typeOf(scope, 'nic').delete(item(ENI) as never, signal());
    await expect(deleting).rejects.toMatchObject({
      code: expected,
      nativeCode: code,
      operation: 'DeleteNetworkInterface',
    });
  });
});

it('a listing of one cluster has what is tagged with it, as a key or as a value', async () => {
  const tagged = (id: string, key: string, value: string) =>
    `<item><networkInterfaceId>${id}</networkInterfaceId><status>available</status><tagSet><item><key>karpenter.sh/nodepool</key><value>p</value></item><item><key>${key}</key><value>${value}</value></item></tagSet></item>`;
  const all = [
    tagged('eni-1', 'kubernetes.io/cluster/one', 'owned'),
    tagged('eni-2', 'eks:eks-cluster-name', 'one'),
    tagged('eni-3', 'kubernetes.io/cluster/two', 'owned'),
    tagged('eni-4', 'kubernetes.io/cluster/one-more', 'owned'),
  ];
  await using server = await scripted(({ action }) =>
    said(action, `<networkInterfaceSet>${all.join('')}</networkInterfaceSet>`),
  );
  const scope = await scopeOn(server.url);
  const listed = async (cluster?: string) =>
    (await Array.fromAsync(typeOf(scope, 'nic').list({ ...filter, cluster }, signal()))).flat().map(({ id }) => id);
  expect(await listed('one')).toEqual(['eni-1', 'eni-2']);
  expect(await listed()).toHaveLength(4);
});

describe('resource groups', () => {
  const group = { resourceGroup: 'leftovers' };
  const arn = (id: string) => ({ ResourceArn: `arn:aws:ec2:${REGION}:123456789012:volume/${id}` });
  const volume = (id: string) =>
    `<item><volumeId>${id}</volumeId><status>available</status><attachmentSet/><tagSet><item><key>karpenter.sh/nodepool</key><value>p</value></item></tagSet></item>`;
  const listed = async (groups: (token: unknown) => object) => {
    const members = ['vol-00000000000000001', 'vol-00000000000000002', 'vol-00000000000000003'];
    await using server = await scripted(({ action, json }) =>
      action === 'DescribeVolumes'
        ? said(action, `<volumeSet>${members.map(volume).join('')}</volumeSet>`)
        : { body: JSON.stringify(groups(json.NextToken)) },
    );
    const scope = await scopeOn(server.url, group);
    const pages = await Array.fromAsync(typeOf(scope, 'disk').list(filter, signal()));
    return { ids: pages.flat().map(({ id }) => id), calls: scope.calls.counts() };
  };

  it('narrow a listing to their members, all pages of them', async () => {
    const { ids, calls } = await listed((token) =>
      token === undefined
        ? { Resources: [{ Identifier: arn('vol-00000000000000001') }], NextToken: 'more' }
        : { Resources: [{ Identifier: arn('vol-00000000000000003') }] },
    );
    expect(ids).toEqual(['vol-00000000000000001', 'vol-00000000000000003']);
    expect(calls).toEqual({ DescribeVolumes: 1, ListGroupResources: 2 });
  });

  it('with QueryErrors, or without a list, have no members that anybody knows', async () => {
    const QueryErrors = [{ ErrorCode: 'CLOUDFORMATION_STACK_NOT_EXISTING', Message: 'no such stack' }];
    const wrong = { code: 'unavailable', nativeCode: 'CLOUDFORMATION_STACK_NOT_EXISTING' };
    await expect(listed(() => ({ Resources: [], QueryErrors }))).rejects.toMatchObject(wrong);
    await expect(listed(() => ({}))).rejects.toMatchObject({ code: 'unavailable', nativeCode: 'IncompleteAnswer' });
  });
});
