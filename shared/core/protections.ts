import type { Resource } from './model.ts';
import type { Policy } from './policy.ts';
import { folded } from './tags.ts';

/** Why a resource must stay, or undefined. */
export interface Protection {
  readonly reason: 'opted-out' | 'excluded' | 'locked' | 'protected';
  readonly evidence: string;
}

/**
 * Tags that mark a Kubernetes persistent volume on any cloud, once `/`, `.` and `_` are read as `-`, since clouds forbid
 * some of them in keys. Sources: kubernetes pkg/volume/util (created-for), kubernetes-csi/external-provisioner, the
 * CSI drivers of AWS (`ebs.csi.aws.com/cluster`, `CSIVolumeName`), Azure (`k8s-azure-created-by`) and Google Cloud.
 */
const PERSISTENT_VOLUME_TAGS = [
  /^kubernetes-io-created-for-/,
  /^kubernetes-io-created-by$/,
  /^csivolumename$/,
  /^ebs-csi-(eks-)?(aws|amazonaws)-com-/,
  /^k8s-azure-created-by$/,
  /-gke-io$/,
];
const PERSISTENT_VOLUME_DESCRIPTION = /kubernetes\.io\/created-for\/|storage\.gke\.io\/created-by/;

/** The first thing that forbids deletion, the owner's wish before everything else. */
export function protectionOf(resource: Resource, policy: Policy): Protection | undefined {
  return (
    optOutOf(resource, policy) ?? exclusionOf(resource, policy) ?? holdOf(resource) ?? persistentVolumeOf(resource)
  );
}

/** Protects whatever a policy says: nobody who set other opt-out tags meant to give this one up. */
export const OWN_OPT_OUT = 'gleaner-keep';

function optOutOf(resource: Resource, policy: Policy): Protection | undefined {
  for (const [key, value] of protectingTags(resource, [OWN_OPT_OUT, ...policy.optOutTags])) {
    // Only the exact word `false` takes the opt-out back: an empty or misspelt value protects.
    if (value !== 'false') return { reason: 'opted-out', evidence: `tag ${key}=${value}` };
  }
  return undefined;
}

/**
 * Tags under these keys, whatever their case, also where the cloud minds it: whoever wrote `Gleaner-Keep` meant it, and
 * what protects errs towards keeping.
 */
function protectingTags({ tags }: Resource, keys: readonly string[]): [key: string, value: string][] {
  const wanted = new Set(keys.map((key) => key.toLowerCase()));
  return Object.entries(tags).filter(([key]) => wanted.has(key.trim().toLowerCase()));
}

function exclusionOf(resource: Resource, policy: Policy): Protection | undefined {
  if (!policy.kinds.includes(resource.kind))
    return { reason: 'excluded', evidence: `policy kinds: ${policy.kinds.join(', ')}` };
  for (const [index, rule] of policy.exclude.entries()) {
    const evidence = `policy exclude.${index}`;
    if (rule.id !== undefined && rule.id.toLowerCase() === resource.id.toLowerCase())
      return { reason: 'excluded', evidence };
    if (rule.name !== undefined && globMatches(rule.name, resource.name)) return { reason: 'excluded', evidence };
    if (rule.tag === undefined) continue;
    const wanted = rule.value?.toLowerCase();
    const found = protectingTags(resource, [rule.tag]).some(
      ([, value]) => wanted === undefined || wanted === value.toLowerCase(),
    );
    if (found) return { reason: 'excluded', evidence };
  }
  return undefined;
}

function holdOf(resource: Resource): Protection | undefined {
  const hold = resource.holds[0];
  if (!hold) return undefined;
  return { reason: hold.code === 'locked' ? 'locked' : 'protected', evidence: `${hold.code}: ${hold.detail}` };
}

function persistentVolumeOf(resource: Resource): Protection | undefined {
  if (resource.kind !== 'disk') return undefined;
  for (const key of Object.keys(resource.tags)) {
    const plain = key.toLowerCase().replaceAll(/[/._]/g, '-');
    if (PERSISTENT_VOLUME_TAGS.some((pattern) => pattern.test(plain))) {
      return { reason: 'protected', evidence: `persistent-volume: tag ${key}` };
    }
  }
  if (resource.description !== undefined && PERSISTENT_VOLUME_DESCRIPTION.test(resource.description)) {
    return { reason: 'protected', evidence: 'persistent-volume: description' };
  }
  return undefined;
}

/** `*` = any characters; everything else literally. Names are compared without case: an exclusion errs towards keeping. */
function globMatches(glob: string, name: string): boolean {
  const pattern = glob
    .split('*')
    .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
  return new RegExp(`^${pattern}$`, 'is').test(name);
}

/**
 * Whether a tag names one of `clusters`: as a key that ends in it (`kubernetes.io/cluster/<c>`), or as the value of a key that
 * speaks of a cluster. With its case where the cloud minds it: EKS may have both `prod` and `Prod`.
 */
export function belongsToCluster(
  resource: Pick<Resource, 'tags' | 'tagsIgnoreCase'>,
  clusters: readonly string[],
): boolean {
  return Object.entries(resource.tags).some(([key, value]) =>
    clusters.some((cluster) => {
      const name = folded(resource, cluster);
      const asKey = /cluster[-/._:]$/i.test(key.slice(0, -name.length)) && folded(resource, key).endsWith(name);
      return asKey || (folded(resource, value) === name && /cluster/i.test(key));
    }),
  );
}
