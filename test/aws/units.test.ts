import { describe, expect, it } from 'vitest';
import { clusterApi } from '../../shared/aws/conventions/cluster-api.ts';
import { gardenerMcm } from '../../shared/aws/conventions/gardener-mcm.ts';
import { vpcCni } from '../../shared/aws/conventions/vpc-cni.ts';
import { toCloudError } from '../../shared/aws/errors.ts';
import { parseEc2Event } from '../../shared/aws/events.ts';
import { identify, parseOwnerTag } from '../../shared/aws/ids.ts';
import { isCandidate } from '../../shared/aws/tags.ts';
import { isRetryable } from '../../shared/core/errors.ts';
import type { Resource } from '../../shared/core/model.ts';

const ID = 'i-0123456789abcdef0';
const OTHER = 'i-0fedcba9876543210';

function resource(over: Partial<Resource>): Resource {
  return {
    key: 'aws:us-east-1:x',
    id: 'x',
    cloud: 'aws',
    type: 't',
    kind: 'disk',
    name: 'x',
    place: 'us-east-1',
    tags: {},
    state: 'free',
    nativeState: 'available',
    attachedTo: [],
    holds: [],
    ...over,
  };
}

/** An error as the SDK throws it. */
function sdkError(name: string, message = name, status = 400): Error {
  return Object.assign(new Error(message), { name, Code: name, $metadata: { httpStatusCode: status } });
}

describe('EC2 errors', () => {
  it.each([
    ['InvalidVolume.NotFound', 'gone', false],
    ['InvalidNetworkInterfaceID.NotFound', 'gone', false],
    ['VolumeInUse', 'in-use', true],
    ['IncorrectState', 'in-use', true],
    ['RequestLimitExceeded', 'throttled', true],
    ['SnapshotCreationPerVolumeRateExceeded', 'throttled', true],
    ['OperationNotPermitted', 'locked', false],
    ['UnauthorizedOperation', 'denied', false],
    ['OptInRequired', 'denied', false],
    ['AuthFailure', 'denied', false],
    ['InvalidParameterValue', 'invalid', false],
    ['DependencyViolation', 'invalid', false],
    ['InternalError', 'unavailable', true],
    ['TimeoutError', 'unavailable', true],
    ['SomethingNew', 'unknown', false],
  ])('%s means %s; would a retry help: %s', (code, expected, retry) => {
    const error = toCloudError(sdkError(code), 'DeleteVolume');
    expect(error).toMatchObject({ code: expected, nativeCode: code, operation: 'DeleteVolume' });
    expect(isRetryable(error.code)).toBe(retry);
  });

  it('asks the message only where a code means several things', () => {
    const busy = sdkError('InvalidParameterValue', "Network interface 'eni-1' is currently in use.");
    expect(toCloudError(busy, 'x').code).toBe('in-use');
    expect(toCloudError(sdkError('UnauthorizedOperation', 'is currently in use'), 'x').code).toBe('denied');
  });

  it.each([
    [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'unavailable'],
    [sdkError('Odd', 'odd', 503), 'unavailable'],
    [sdkError('Odd', 'odd', 429), 'throttled'],
    [sdkError('Odd', 'odd', 403), 'denied'],
    [new TypeError('a mistake of ours'), 'unknown'],
    ['a string', 'unknown'],
  ])('falls back on the connection and the status, and on unknown', (thrown, expected) => {
    expect(toCloudError(thrown, 'x').code).toBe(expected);
  });
});

describe('conventions on AWS', () => {
  const MCM = { Name: 'shoot--dev--pool-1', 'kubernetes.io/cluster/shoot--dev': '1', 'kubernetes.io/role/node': '1' };

  it('Gardener: by Name, only with both tags', () => {
    expect(gardenerMcm.attribute(resource({ tags: MCM }))).toMatchObject([
      {
        ref: {
          by: 'name',
          value: 'shoot--dev--pool-1',
          place: 'us-east-1',
          clusterTag: 'kubernetes.io/cluster/shoot--dev',
        },
      },
    ]);
    for (const missing of Object.keys(MCM)) {
      const tags = Object.fromEntries(Object.entries(MCM).filter(([key]) => key !== missing));
      expect(gardenerMcm.attribute(resource({ tags }))).toEqual([]);
    }
    expect(gardenerMcm.attribute(resource({ tags: { ...MCM, 'kubernetes.io/cluster/shoot--dev': 'owned' } }))).toEqual(
      [],
    );
    expect(gardenerMcm.attribute(resource({ tags: { ...MCM, Name: 'pool-*' } }))).toEqual([]);
  });

  it('VPC CNI: by tag and description, and by both where they disagree', () => {
    const nic = (tags: Record<string, string>, description?: string) =>
      vpcCni.attribute(resource({ kind: 'nic', tags, description })).map(({ ref }) => ref.value);
    const tag = 'node.k8s.amazonaws.com/instance_id';
    expect(nic({ [tag]: ID })).toEqual([ID]);
    expect(nic({}, `aws-K8S-${ID}`)).toEqual([ID]);
    expect(nic({ [tag]: ID }, `aws-K8S-${OTHER}`)).toEqual([ID, OTHER]);
    // What cannot be looked up is unknown, and keeps, whatever else names a dead owner.
    expect(nic({ [tag]: 'i-nonsense' }, 'aws-K8S-something')).toEqual(['i-nonsense', 'something']);
    expect(vpcCni.attribute(resource({ kind: 'disk', tags: { [tag]: ID } }))).toEqual([]);
  });

  it('Cluster API: by MachineName, only where the cluster owns it', () => {
    const cluster = 'sigs.k8s.io/cluster-api-provider-aws/cluster/c1';
    const owned = clusterApi.attribute(resource({ tags: { MachineName: 'default/c1-md-0', [cluster]: 'owned' } }));
    expect(owned).toMatchObject([{ ref: { by: 'name', value: 'c1-md-0', clusterTag: cluster } }]);
    expect(clusterApi.attribute(resource({ tags: { MachineName: 'default/c1-md-0', [cluster]: 'shared' } }))).toEqual(
      [],
    );
  });

  it('reads owner tags: an id, a name, or nothing that can be looked up', () => {
    expect(parseOwnerTag(ID.toUpperCase(), { place: 'r' })).toEqual({ by: 'id', value: ID, place: 'r' });
    expect(parseOwnerTag('my vm', { place: 'r' })).toEqual({ by: 'name', value: 'my vm', place: 'r' });
    for (const odd of ['', ' x', 'i-123', 'i-', 'a*', 'a?', 'a\\', 'tab\t'])
      expect(parseOwnerTag(odd, { place: 'r' })).toBeUndefined();
  });

  it('knows candidates by exact keys: AWS compares them with their case', () => {
    const kind = 'disk';
    expect(isCandidate({ kind: 'nic', tags: { 'kubernetes.io/cluster/x': 'owned' } }, [])).toBe(true);
    // Static persistent volumes and pets' data disks carry it too.
    expect(isCandidate({ kind, tags: { 'kubernetes.io/cluster/x': 'owned' } }, [])).toBe(false);
    expect(isCandidate({ kind, tags: { 'kubernetes.io/cluster/x': '1', 'kubernetes.io/role/node': '1' } }, [])).toBe(
      true,
    );
    expect(isCandidate({ kind, tags: { 'gc-owner': '1' } }, ['gc-owner'])).toBe(true);
    expect(isCandidate({ kind, tags: { 'GC-Owner': '1' } }, ['gc-owner'])).toBe(false);
    expect(isCandidate({ kind, tags: { Name: 'x' } }, ['gleaner-owner'])).toBe(false);
  });

  it('tells native ids', () => {
    expect(identify('r', 'VOL-0123456789abcdef0')).toMatchObject({
      key: 'aws:r:vol-0123456789abcdef0',
      type: 'ebs-volume',
    });
    expect(identify('r', 'eni-01234567')).toMatchObject({ type: 'ec2-network-interface' });
    expect(identify('r', 'i-0123456789abcdef0')).toBeUndefined();
  });
});

describe('EC2 events', () => {
  const event = (state: string, over: object = {}) => ({
    version: '0',
    id: 'e-1',
    'detail-type': 'EC2 Instance State-change Notification',
    source: 'aws.ec2',
    account: '123456789012',
    time: '2026-12-01T12:00:00Z',
    region: 'eu-west-1',
    resources: [`arn:aws:ec2:eu-west-1:123456789012:instance/${ID}`],
    detail: { 'instance-id': ID, state },
    ...over,
  });

  it.each([
    ['running', 'started'],
    ['shutting-down', 'deleting'],
    ['terminated', 'deleted'],
  ])('%s is %s', (state, change) => {
    expect(parseEc2Event(event(state))).toEqual([
      {
        eventId: 'e-1',
        cloud: 'aws',
        change,
        scopeId: 'aws:eu-west-1',
        vmId: ID,
        place: 'eu-west-1',
        time: new Date('2026-12-01T12:00:00Z'),
      },
    ]);
  });

  it.each([['pending'], ['stopping'], ['stopped']])('%s is none of ours', (state) => {
    expect(parseEc2Event(event(state))).toEqual([]);
  });

  it('leaves other sources alone, and names the field that is wrong', () => {
    expect(parseEc2Event(event('terminated', { source: 'aws.ecs' }))).toEqual([]);
    expect(() => parseEc2Event(event('exploded'))).toThrow(/^event\.detail\.state: /);
    expect(() => parseEc2Event(event('terminated', { time: 'yesterday' }))).toThrow(/^event\.time: /);
    expect(() => parseEc2Event(event('terminated', { detail: { 'instance-id': 'x', state: 'terminated' } }))).toThrow(
      /^event\.detail\.instance-id: /,
    );
    expect(() => parseEc2Event('text')).toThrow(/^event: /);
    expect(() => parseEc2Event({})).toThrow(/^event\.source: /);
  });
});
