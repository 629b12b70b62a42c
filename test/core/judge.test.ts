import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Case, judge, type NamedOwner } from '../../shared/core/judge.ts';
import type { OwnerState, Resource, UseState } from '../../shared/core/model.ts';
import { parsePolicy } from '../../shared/core/policy.ts';

const NOW = new Date('2026-12-01T12:00:00Z');
const ago = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);

function disk(over: Partial<Resource> = {}): Resource {
  return {
    key: 'c:vol-1',
    id: 'vol-1',
    cloud: 'c',
    type: 'disk',
    kind: 'disk',
    name: 'vol-1',
    place: 'r',
    tags: { 'kubernetes.io/cluster/shoot': '1' },
    state: 'free',
    nativeState: 'available',
    attachedTo: [],
    holds: [],
    createdAt: ago(600),
    ...over,
  };
}

function owner(state: OwnerState, value = 'i-1'): NamedOwner {
  return {
    attribution: { ref: { by: 'id', value, place: 'r' }, evidence: 'claim', detail: 'claimed' },
    answer: { state, detail: state },
  };
}

/** An orphan through and through; each test spoils one thing. */
function orphan(over: Partial<Case> = {}): Case {
  return {
    resource: disk(),
    owners: [owner('gone')],
    unparsable: [],
    candidate: true,
    mark: { resourceKey: 'c:vol-1', firstSeen: ago(45) },
    policy: parsePolicy({}),
    now: NOW,
    clusters: [],
    ...over,
  };
}

const reasonOf = (over: Partial<Case>) => {
  const { verdict, reason } = judge(orphan(over));
  return `${verdict}: ${reason}`;
};

describe('judge', () => {
  it('reaps an orphan', () => {
    expect(reasonOf({})).toBe('reap: orphan');
  });

  it.each<[string, Partial<Case>]>([
    ['keep: opted-out', { resource: disk({ tags: { 'gleaner-keep': '' } }) }],
    ['keep: opted-out', { resource: disk({ tags: { 'gleaner-keep': 'flase' } }) }],
    ['reap: orphan', { resource: disk({ tags: { 'gleaner-keep': 'false' } }) }],
    ['keep: opted-out', { resource: disk({ tags: { 'Gleaner-Keep': 'true' }, tagsIgnoreCase: true }) }],
    // What protects is heeded in any case, also where the cloud tells keys apart by it.
    ['keep: opted-out', { resource: disk({ tags: { 'Gleaner-Keep': 'true' } }) }],
    ['keep: opted-out', { resource: disk({ tags: { 'GLEANER-KEEP ': '' } }) }],
    ['keep: opted-out', { resource: disk({ tags: { 'gleaner-keep': 'false', 'Gleaner-Keep': '1' } }) }],
    [
      'keep: opted-out',
      { resource: disk({ tags: { 'gleaner-keep': '1' } }), policy: parsePolicy({ optOutTags: ['keep'] }) },
    ],
    ['keep: opted-out', { resource: disk({ tags: { keep: '1' } }), policy: parsePolicy({ optOutTags: ['keep'] }) }],
    ['keep: excluded', { policy: parsePolicy({ exclude: [{ id: 'VOL-1' }] }) }],
    ['keep: excluded', { policy: parsePolicy({ exclude: [{ name: 'vol-*' }] }) }],
    ['keep: excluded', { policy: parsePolicy({ exclude: [{ tag: 'kubernetes.io/cluster/shoot', value: '1' }] }) }],
    [
      'keep: excluded',
      {
        resource: disk({ tags: { 'kubernetes.io/cluster/shoot': '1', Stage: 'PROD' } }),
        policy: parsePolicy({ exclude: [{ tag: 'stage', value: 'prod' }] }),
      },
    ],
    ['reap: orphan', { policy: parsePolicy({ exclude: [{ tag: 'kubernetes.io/cluster/shoot', value: '2' }] }) }],
    ['keep: excluded', { policy: parsePolicy({ kinds: ['nic'] }) }],
    ['keep: locked', { resource: disk({ holds: [{ code: 'locked', detail: 'CanNotDelete' }] }) }],
    [
      'keep: protected',
      { resource: disk({ holds: [{ code: 'requester-managed', detail: 'RequesterManaged=true' }] }) },
    ],
    ['keep: protected', { resource: disk({ tags: { 'kubernetes.io/created-for/pvc/name': 'data' } }) }],
    ['keep: protected', { resource: disk({ tags: { 'kubernetes.io-created-for-pvc-name': 'data' } }) }],
    ['keep: protected', { resource: disk({ tags: { CSIVolumeName: 'pvc-1' } }) }],
    ['keep: protected', { resource: disk({ tags: { 'ebs.csi.aws.com/cluster': 'true' } }) }],
    ['keep: protected', { resource: disk({ tags: { 'k8s-azure-created-by': 'kubernetes-azure-dd' } }) }],
    ['keep: protected', { resource: disk({ tags: { 'goog-k8s-cluster-name-gke-io': 'c' } }) }],
    ['keep: protected', { resource: disk({ description: '{"kubernetes.io/created-for/pv/name":"pvc-1"}' }) }],
    ['reap: orphan', { resource: disk({ name: 'pvc-5f0c' }) }],
    ['keep: out-of-scope', { clusters: ['other'] }],
    ['reap: orphan', { clusters: ['shoot'] }],
    ['keep: out-of-scope', { clusters: ['hoot'] }],
    ['reap: orphan', { clusters: ['c1'], resource: disk({ tags: { 'cluster.k8s.amazonaws.com/name': 'c1' } }) }],
    ['keep: out-of-scope', { clusters: ['c1'], resource: disk({ tags: { Name: 'c1' } }) }],
    ['keep: attached', { resource: disk({ state: 'attached' }) }],
    ['keep: attached', { resource: disk({ attachedTo: ['i-9'] }) }],
    ['wait: changing', { resource: disk({ state: 'changing' }) }],
    ['keep: already-deleting', { resource: disk({ state: 'deleting' }) }],
    ['keep: owner-unknown', { owners: [] }],
    ['keep: owner-unproven', { unparsable: ['tag gleaner-owner=?'] }],
    ['keep: untagged', { candidate: false }],
    ['keep: owner-alive', { candidate: false, owners: [owner('alive')] }],
    ['keep: owner-alive', { owners: [owner('gone'), owner('alive', 'i-2')] }],
    ['keep: owner-unproven', { owners: [owner('gone'), owner('unknown', 'i-2')] }],
    ['keep: time-odd', { resource: disk({ createdAt: ago(-5) }) }],
    ['keep: time-odd', { resource: disk({ createdAt: new Date(Number.NaN) }) }],
    // Added to a date it is none any more, and compared with that everything is false.
    ['keep: time-odd', { policy: { ...parsePolicy({}), grace: 9e15 } }],
    ['keep: time-odd', { policy: { ...parsePolicy({}), minAge: Number.NaN } }],
    ['keep: time-odd', { mark: { resourceKey: 'c:vol-1', firstSeen: ago(-1) } }],
    ['keep: created-after-event', { resource: disk({ createdAt: ago(20) }), eventTime: ago(60) }],
    ['wait: too-young', { resource: disk({ createdAt: ago(5) }) }],
    ['wait: in-grace', { mark: { resourceKey: 'c:vol-1', firstSeen: ago(29) } }],
    ['wait: in-grace', { mark: undefined }],
    ['wait: in-grace', { resource: disk({ detachedAt: ago(10) }), mark: undefined }],
    ['reap: orphan', { resource: disk({ detachedAt: ago(31) }), mark: undefined }],
    ['wait: settling', { resource: disk({ detachedAt: ago(31), needsSecondLook: true }), mark: undefined }],
    [
      'reap: orphan',
      {
        resource: disk({ detachedAt: ago(31), needsSecondLook: true }),
        mark: { resourceKey: 'c:vol-1', firstSeen: ago(6), detachedAt: ago(31) },
      },
    ],
    [
      // The ownership time changed since the first look: somebody used it in between.
      'wait: settling',
      {
        resource: disk({ detachedAt: ago(31), needsSecondLook: true }),
        mark: { resourceKey: 'c:vol-1', firstSeen: ago(40), detachedAt: ago(90) },
      },
    ],
    [
      'wait: too-young',
      { resource: disk({ createdAt: undefined }), mark: { resourceKey: 'c:vol-1', firstSeen: ago(9) } },
    ],
    [
      'wait: in-grace',
      { resource: disk({ createdAt: undefined }), mark: { resourceKey: 'c:vol-1', firstSeen: ago(11) } },
    ],
    [
      'reap: orphan',
      { resource: disk({ createdAt: undefined }), mark: { resourceKey: 'c:vol-1', firstSeen: ago(31) } },
    ],
  ])('says %s', (expected, over) => {
    expect(reasonOf(over)).toBe(expected);
  });

  it('says when a waiting one would go: the latest of age, grace and second look', () => {
    const { dueAt } = judge(
      orphan({ resource: disk({ createdAt: ago(5) }), mark: { resourceKey: 'c:vol-1', firstSeen: ago(29) } }),
    );
    expect(dueAt).toEqual(ago(-5));
  });
});

/** Mostly harmless, so that many cases are spoiled by one thing only and some by none. */
const mostly = <T>(good: T, any: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(good) }, { weight: 1, arbitrary: any });
const minutes = fc.option(
  fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 0, max: 600 }) }, fc.integer({ min: -60, max: 0 })),
  {
    nil: undefined,
  },
);

const anyCase = fc.record({
  state: mostly<UseState>('free', fc.constantFrom('attached', 'changing', 'deleting')),
  attachedTo: mostly<string[]>([], fc.constant(['i-9'])),
  hold: mostly(false, fc.boolean()),
  tags: mostly<Record<string, string>>(
    { Name: 'x' },
    fc.dictionary(
      fc.constantFrom('gleaner-keep', 'Name', 'kubernetes.io/created-for/pv/name', 'kubernetes.io/cluster/shoot', 'x'),
      fc.constantFrom('', '1', 'true', 'false'),
    ),
  ),
  owners: mostly<OwnerState[]>(['gone'], fc.array(fc.constantFrom('alive', 'gone', 'unknown'), { maxLength: 3 })),
  unparsable: mostly(false, fc.boolean()),
  candidate: mostly(true, fc.boolean()),
  createdMinutes: minutes,
  detachedMinutes: minutes,
  seenMinutes: minutes,
  eventMinutes: minutes,
  secondLook: fc.boolean(),
  grace: fc.constantFrom('0', '1m', '30m', '2h'),
  minAge: fc.constantFrom('0', '10m', '1h'),
});
type Any = typeof anyCase extends fc.Arbitrary<infer T> ? T : never;

function build(any: Any): Case {
  const detachedAt = any.detachedMinutes === undefined ? undefined : ago(any.detachedMinutes);
  const holds = any.hold ? [{ code: 'requester-managed', detail: 'x' }] : [];
  const createdAt = any.createdMinutes === undefined ? undefined : ago(any.createdMinutes);
  const { state, attachedTo, tags, candidate, secondLook } = any;
  return orphan({
    resource: disk({ state, attachedTo, tags, holds, createdAt, detachedAt, needsSecondLook: secondLook }),
    owners: any.owners.map((one, index) => owner(one, `i-${index}`)),
    unparsable: any.unparsable ? ['?'] : [],
    candidate,
    mark:
      any.seenMinutes === undefined
        ? undefined
        : { resourceKey: 'c:vol-1', firstSeen: ago(any.seenMinutes), detachedAt },
    eventTime: any.eventMinutes === undefined ? undefined : ago(any.eventMinutes),
    policy: parsePolicy({ grace: any.grace, minAge: any.minAge }),
  });
}

describe('judge, whatever the case', () => {
  it('reaps only what is free, unprotected, owned by the provably dead, old enough, and past its grace', () => {
    let reaped = 0;
    fc.assert(
      fc.property(anyCase, (any) => {
        const input = build(any);
        if (judge(input).verdict !== 'reap') return;
        reaped += 1;
        const { resource, policy, mark } = input;
        expect(resource.state).toBe('free');
        expect(resource.attachedTo).toEqual([]);
        expect(resource.holds).toEqual([]);
        expect([undefined, 'false']).toContain(resource.tags['gleaner-keep']);
        expect(Object.keys(resource.tags)).not.toContain('kubernetes.io/created-for/pv/name');
        expect(any.owners.length).toBeGreaterThan(0);
        expect(new Set(any.owners)).toEqual(new Set(['gone']));
        expect(any.unparsable).toBe(false);
        expect(any.candidate).toBe(true);
        const born = resource.createdAt ?? mark?.firstSeen ?? NOW;
        expect(NOW.getTime() - born.getTime()).toBeGreaterThanOrEqual(policy.minAge);
        const since = resource.detachedAt ?? mark?.firstSeen ?? NOW;
        expect(NOW.getTime() - since.getTime()).toBeGreaterThanOrEqual(policy.grace);
        if (input.eventTime && resource.createdAt) expect(resource.createdAt <= input.eventTime).toBe(true);
        if (resource.needsSecondLook)
          expect(NOW.getTime() - (mark?.firstSeen ?? NOW).getTime()).toBeGreaterThanOrEqual(policy.settle);
      }),
      { numRuns: 20_000 },
    );
    expect(reaped).toBeGreaterThan(200);
  });

  it('always says why', () => {
    fc.assert(
      fc.property(anyCase, (any) => {
        const { reason, evidence } = judge(build(any));
        expect(reason.length).toBeGreaterThan(0);
        expect(evidence.length).toBeGreaterThan(0);
        expect(evidence.every((line) => line.length > 0)).toBe(true);
      }),
    );
  });

  it('changes nothing that it is given', () => {
    fc.assert(
      fc.property(anyCase, (any) => {
        const input = build(any);
        const before = structuredClone(input);
        judge(input);
        expect(input).toEqual(before);
      }),
    );
  });
});
