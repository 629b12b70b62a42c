import type { Attribution, Claim, Resource } from './model.ts';
import type { Policy } from './policy.ts';
import { type CloudScope, ownerKey } from './ports.ts';
import { tagEntries } from './tags.ts';

export interface Attributed {
  /** Every owner that any evidence names, each once, in the order: explicit tag, claim, conventions. */
  readonly attributions: readonly Attribution[];
  /** Owner tags whose value names nothing that can be looked up: each of them keeps. */
  readonly unparsable: readonly string[];
}

/**
 * Names the owners of a resource. All evidence counts, not only the first: a resource goes only when every owner that
 * anything names is gone, so a wrong tag or an ambiguous name can only ever keep too much.
 */
export function attribute(
  resource: Resource,
  claim: Claim | undefined,
  scope: Pick<CloudScope, 'conventions' | 'parseOwnerTag'>,
  policy: Policy,
): Attributed {
  const attributions: Attribution[] = [];
  const unparsable: string[] = [];
  for (const [key, value] of tagEntries(resource, policy.ownerTags)) {
    const ref = scope.parseOwnerTag(value, resource);
    if (ref) attributions.push({ ref, evidence: 'owner-tag', detail: `tag ${key}=${value}` });
    else unparsable.push(`tag ${key}=${value}`);
  }
  if (claim) {
    attributions.push({ ref: claim.owner, evidence: 'claim', detail: `claimed since ${claim.since.toISOString()}` });
  }
  for (const convention of scope.conventions) attributions.push(...convention.attribute(resource));
  const seen = new Set<string>();
  const distinct = attributions.filter(({ ref }) => !seen.has(ownerKey(ref)) && seen.add(ownerKey(ref)));
  return { attributions: distinct, unparsable };
}
