import { formatDuration } from './duration.ts';
import type { Attribution, Claim, Judgement, Mark, OwnerAnswer, Reason, Resource, Verdict } from './model.ts';
import type { Policy } from './policy.ts';
import { belongsToCluster, protectionOf } from './protections.ts';

export interface NamedOwner {
  readonly attribution: Attribution;
  readonly answer: OwnerAnswer;
}

export interface Case {
  readonly resource: Resource;
  /** Every owner named, each with its answer. */
  readonly owners: readonly NamedOwner[];
  readonly unparsable: readonly string[];
  /** It carries a tag of a known controller or an owner tag. */
  readonly candidate: boolean;
  readonly claim?: Claim;
  /** First sighting as an orphan; absent = this is the first. */
  readonly mark?: Mark;
  readonly policy: Policy;
  readonly now: Date;
  /** Only resources of these clusters; empty = all. */
  readonly clusters: readonly string[];
  /** When the VM-deleted event was raised, if one led here. */
  readonly eventTime?: Date;
}

/**
 * Decides. Pure: everything it knows is in the case. What speaks for keeping is asked first, so no reason to delete can
 * outvote one to keep; `reap` is what remains when nothing is left to say against it.
 */
export function judge(input: Case): Verdict {
  return judgeResource(input) ?? judgeOwners(input) ?? judgeTimes(input);
}

function judgeResource({ resource, policy, clusters }: Case): Verdict | undefined {
  const protection = protectionOf(resource, policy);
  if (protection) return verdict('keep', protection.reason, [protection.evidence]);
  if (clusters.length > 0 && !belongsToCluster(resource, clusters)) {
    return verdict('keep', 'out-of-scope', [`no tag names cluster ${clusters.join(' or ')}`]);
  }
  const state = `state ${resource.nativeState}`;
  if (resource.state === 'deleting') return verdict('keep', 'already-deleting', [state]);
  if (resource.state === 'changing') return verdict('wait', 'changing', [state]);
  if (resource.state !== 'free' || resource.attachedTo.length > 0) {
    return verdict('keep', 'attached', [state, ...resource.attachedTo.map((id) => `attached to ${id}`)]);
  }
  return undefined;
}

function judgeOwners({ owners, unparsable, candidate }: Case): Verdict | undefined {
  const alive = owners.find(({ answer }) => answer.state === 'alive');
  if (alive) return ownerVerdict('keep', 'owner-alive', alive);
  if (!candidate) return verdict('keep', 'untagged', ['no tag of a known controller']);
  if (unparsable.length > 0)
    return verdict(
      'keep',
      'owner-unproven',
      unparsable.map((text) => `${text} cannot be parsed`),
    );
  const first = owners[0];
  if (!first) return verdict('keep', 'owner-unknown', ['nothing names an owner']);
  const unproven = owners.find(({ answer }) => answer.state !== 'gone');
  return unproven && ownerVerdict('keep', 'owner-unproven', unproven);
}

function judgeTimes(input: Case): Verdict {
  const { resource, policy, now, eventTime, claim } = input;
  const owner = input.owners[0] as NamedOwner;
  const mark = validMark(input);
  const odd = oddTime(input);
  if (odd) return ownerVerdict('keep', 'time-odd', owner, [odd]);
  if (eventTime && resource.createdAt && resource.createdAt > eventTime) {
    const evidence = `created ${iso(resource.createdAt)}, event ${iso(eventTime)}`;
    return ownerVerdict('keep', 'created-after-event', owner, [evidence]);
  }
  const firstSeen = mark?.firstSeen ?? now;
  // Where the cloud tells no creation time, the age is counted from the first time that it was seen at all.
  const bornBy = resource.createdAt ?? earlier(claim?.since, firstSeen);
  const young = later(bornBy, policy.minAge);
  const grace = later(resource.detachedAt ?? firstSeen, policy.grace);
  const settled = resource.needsSecondLook ? later(firstSeen, policy.settle) : grace;
  const dueAt = new Date(Math.max(young.getTime(), grace.getTime(), settled.getTime()));
  // Compared with such a time everything is false, and what remains after all comparisons is to delete.
  if (Number.isNaN(dueAt.getTime())) return ownerVerdict('keep', 'time-odd', owner, ['due at no time that there is']);
  const evidence = [
    resource.createdAt ? `created ${iso(resource.createdAt)}` : `no creation time, known since ${iso(bornBy)}`,
    sinceWhen(resource.detachedAt, mark, firstSeen),
  ];
  const orphanSince = resource.detachedAt ?? firstSeen;
  const wait = (reason: Reason) => ({
    ...ownerVerdict('wait', reason, owner, [...evidence, `due ${iso(dueAt)}`]),
    dueAt,
    orphanSince,
  });
  if (young > now) return wait('too-young');
  if (grace > now) return wait('in-grace');
  if (settled > now) return wait('settling');
  const passed = `grace ${formatDuration(policy.grace)} passed`;
  return { ...ownerVerdict('reap', 'orphan', owner, [...evidence, passed]), dueAt, orphanSince };
}

function sinceWhen(detachedAt: Date | undefined, mark: Mark | undefined, firstSeen: Date): string {
  if (detachedAt) return `detached ${iso(detachedAt)}`;
  return mark ? `first seen as an orphan ${iso(firstSeen)}` : 'seen as an orphan for the first time';
}

/** A mark counts only while nobody has used the resource since: a changed detach time voids it. */
function validMark({ resource, mark }: Case): Mark | undefined {
  if (!mark || mark.detachedAt?.getTime() !== resource.detachedAt?.getTime()) return undefined;
  return mark;
}

/** Times that cannot be: unreadable, or ahead of now. A clock that is wrong about one thing is not trusted about another. */
function oddTime({ resource, mark, now }: Case): string | undefined {
  const times = { creation: resource.createdAt, detach: resource.detachedAt, mark: mark?.firstSeen };
  for (const [what, time] of Object.entries(times)) {
    if (!time) continue;
    if (Number.isNaN(time.getTime())) return `${what} time unreadable`;
    if (time > now) return `${what} time ${iso(time)} is in the future`;
  }
  return undefined;
}

function verdict(judgement: Judgement, reason: Reason, evidence: readonly string[]): Verdict {
  return { verdict: judgement, reason, evidence };
}

function ownerVerdict(
  judgement: Judgement,
  reason: Reason,
  owner: NamedOwner,
  evidence: readonly string[] = [],
): Verdict {
  const { attribution, answer } = owner;
  const named = `${attribution.evidence}: ${attribution.detail}`;
  const found = `owner ${attribution.ref.value} ${answer.state}: ${answer.detail}`;
  return { verdict: judgement, reason, evidence: [named, found, ...evidence], owner };
}

const iso = (time: Date) => time.toISOString();
const later = (time: Date, ms: number) => new Date(time.getTime() + ms);
const earlier = (a: Date | undefined, b: Date) => (a && a < b ? a : b);
