import { Aws } from 'aws-cdk-lib';
import { Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { CANDIDATE_TAG_KEYS, CANDIDATE_TAG_PREFIXES, PROTECTING_TAG_KEYS } from '../../shared/aws/tags.ts';
import type { Settings } from './settings.ts';

const DELETES = { disk: 'ec2:DeleteVolume', nic: 'ec2:DeleteNetworkInterface' } as const;
const RESOURCES = { disk: 'volume', nic: 'network-interface' } as const;

type Conditions = Record<string, Record<string, unknown>>;

const tagKey = (key: string) => `aws:ResourceTag/${key}`;
/** `Null: false` is IAM's way to say that the tag is there. */
const isThere = (key: string): Conditions => ({ Null: { [tagKey(key)]: 'false' } });

/** Calls to other regions than the deployment's are refused, whatever the code asks for. */
export function inRegions({ regions }: Settings): Conditions {
  if (regions?.includes('all')) return {};
  const names = regions ?? [Aws.REGION];
  return { StringEquals: { 'aws:RequestedRegion': names.length === 1 ? names[0] : [...names] } };
}

/** ARN of every resource of an EC2 type in this account. */
export function ec2Arn(type: string, account: string = Aws.ACCOUNT_ID): string {
  return `arn:${Aws.PARTITION}:ec2:*:${account}:${type}/*`;
}

/**
 * Deletion, one statement for each tag that makes a candidate, since conditions of one statement must all hold. IAM knows
 * exact keys only: of keys that end in a cluster's name just those of the clusters in scope can be named. Controllers set
 * one of the other keys beside them.
 */
export function allowDeletes(settings: Settings): PolicyStatement[] {
  const { kinds, ownerTags, clusters, snapshot } = settings.policy;
  const ofClusters = CANDIDATE_TAG_PREFIXES.flatMap((prefix) => clusters.map((cluster) => prefix + cluster));
  const keys = new Set([...CANDIDATE_TAG_KEYS, ...ofClusters, ...ownerTags]);
  const actions = kinds.map((kind) => DELETES[kind]) as string[];
  // The source volume of a snapshot is held to the same tags as its deletion.
  if (snapshot === 'before-delete' && kinds.includes('disk')) actions.push('ec2:CreateSnapshot');
  const resources = kinds.map((kind) => ec2Arn(RESOURCES[kind]));
  return [...keys].map(
    (key) => new PolicyStatement({ actions, resources, conditions: { ...isThere(key), ...inRegions(settings) } }),
  );
}

/**
 * What forbids deletion in the code forbids it here once more. IAM compares tag keys without case, the code with it: the
 * difference keeps.
 */
export function denyDeletes({ policy }: Settings): PolicyStatement[] {
  const optOuts = policy.optOutTags.map(
    (key): Conditions => ({ ...isThere(key), StringNotEquals: { [tagKey(key)]: 'false' } }),
  );
  const protections = PROTECTING_TAG_KEYS.map(isThere);
  const exclusions = policy.exclude.flatMap(({ tag, value }): Conditions[] => {
    if (tag === undefined) return [];
    return value === undefined ? [isThere(tag)] : [{ StringEquals: { [tagKey(tag)]: value } }];
  });
  return [...optOuts, ...protections, ...exclusions].map(
    (conditions) =>
      new PolicyStatement({
        effect: Effect.DENY,
        actions: policy.kinds.map((kind) => DELETES[kind]),
        resources: ['*'],
        conditions,
      }),
  );
}

/** Only where the policy has disks deleted after a snapshot. The tags may be set while the snapshot is made, not later. */
export function allowSnapshots(settings: Settings): PolicyStatement[] {
  const { snapshot, kinds } = settings.policy;
  if (snapshot !== 'before-delete' || !kinds.includes('disk')) return [];
  const resources = [ec2Arn('snapshot', '')];
  const region = inRegions(settings);
  return [
    new PolicyStatement({ actions: ['ec2:CreateSnapshot'], resources, conditions: region }),
    new PolicyStatement({
      actions: ['ec2:CreateTags'],
      resources,
      conditions: { ...region, StringEquals: { ...region.StringEquals, 'ec2:CreateAction': 'CreateSnapshot' } },
    }),
    new PolicyStatement({ actions: ['ec2:DescribeSnapshots'], resources: ['*'], conditions: region }),
  ];
}
