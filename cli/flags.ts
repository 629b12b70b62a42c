import { readFileSync } from 'node:fs';
import { parseDuration } from '../shared/core/duration.ts';
import { InputError } from '../shared/core/errors.ts';
import type { Mode } from '../shared/core/model.ts';
import type { Policy } from '../shared/core/policy.ts';
import { parsePolicyText } from '../shared/core/policy-text.ts';
import type { ScopeRequest } from '../shared/core/ports.ts';

export const CLOUDS = ['aws', 'azure'] as const;
type CloudName = (typeof CLOUDS)[number];

/** What commander hands over: texts are not empty, counts are numbers. */
export interface Flags {
  readonly cloud?: CloudName;
  readonly region?: string;
  readonly subscription?: string;
  readonly resourceGroup?: string;
  readonly cluster?: string;
  readonly vm?: string;
  readonly policy?: string;
  readonly mode?: Mode;
  readonly grace?: string;
  readonly minAge?: string;
  readonly settle?: string;
  readonly budget?: number;
  readonly ledger?: string;
  readonly limit?: number;
  readonly wait?: string;
  readonly releaseBreaker?: boolean;
  readonly yes?: boolean;
  readonly all?: boolean;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** The policy file with the flags on top of it. @throws InputError naming the field or the flag */
export function policyOf(flags: Flags): Policy {
  const policy = parsePolicyText(flags.policy === undefined ? '' : readPolicyFile(flags.policy));
  return {
    ...policy,
    grace: durationOf('grace', flags.grace) ?? policy.grace,
    minAge: durationOf('min-age', flags.minAge) ?? policy.minAge,
    settle: durationOf('settle', flags.settle) ?? policy.settle,
    budget: { ...policy.budget, perRun: flags.budget ?? policy.budget.perRun },
  };
}

/** The flag, else the policy, else observe. */
export function modeOf(flags: Flags, policy: Policy): Mode {
  return flags.mode ?? policy.mode ?? 'observe';
}

export function durationOf(flag: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseDuration(value);
  if (ms === undefined)
    throw new InputError(`--${flag}`, `${JSON.stringify(value)} is no duration: 90s, 30m, 1h30m, 0`);
  return ms;
}

/** What to look at. @throws InputError where a cloud's own flag is missing, or another cloud's is given */
function scopeOf(flags: Flags): ScopeRequest {
  const { cloud, cluster, resourceGroup } = flags;
  if (cloud === 'aws' && flags.subscription !== undefined)
    throw new InputError('--subscription', 'belongs to Azure; AWS has --region');
  if (cloud === 'azure' && flags.region !== undefined)
    throw new InputError('--region', 'belongs to AWS; Azure has --subscription');
  const subscriptions = listOf('subscription', flags.subscription);
  return {
    ...(flags.region !== undefined && { regions: listOf('region', flags.region) }),
    ...(subscriptions && { subscriptions }),
    ...(cluster !== undefined && { cluster }),
    ...(resourceGroup !== undefined && { resourceGroup }),
    ...(flags.vm !== undefined && { vm: vmOf(flags, subscriptions) }),
  };
}

/** Where one resource lies: an Azure id names its subscription itself. */
export function scopeOfId(id: string, flags: Flags): ScopeRequest {
  const request = scopeOf(flags);
  if (flags.cloud !== 'azure' || request.subscriptions) return request;
  const subscription = /^\/subscriptions\/([^/]+)\//i.exec(id)?.[1];
  return subscription === undefined ? request : { ...request, subscriptions: [subscription] };
}

/** Core's fields, where a flag sets them. */
const FLAG_OF: Readonly<Record<string, string>> = {
  region: '--region',
  regions: '--region',
  subscription: '--subscription',
  subscriptions: '--subscription',
  resourceGroup: '--resource-group',
  cluster: '--cluster',
  vm: '--vm',
  ledger: '--ledger',
};

/** An input error as somebody reads it who wrote flags. */
export function flagError({ field, message }: InputError): string {
  const flag = FLAG_OF[field];
  return flag === undefined ? message : `${flag}${message.slice(field.length)}`;
}

/** What a sweep looks at. @throws InputError also where Azure is asked without a subscription */
export function sweepScopeOf(flags: Flags): ScopeRequest {
  const request = scopeOf(flags);
  if (flags.cloud === 'azure' && !request.subscriptions && !request.vm?.includes('/')) {
    throw new InputError('--subscription', 'is needed on Azure');
  }
  return request;
}

/** Azure looks a VM up in its resource group: a bare name needs the group beside it. */
function vmOf({ cloud, vm = '', resourceGroup }: Flags, subscriptions: readonly string[] | undefined): string {
  if (cloud !== 'azure' || vm.includes('/')) return vm;
  if (resourceGroup === undefined)
    throw new InputError('--vm', 'needs --resource-group beside a name, or the whole resource id');
  if (subscriptions?.length !== 1) throw new InputError('--vm', 'needs one --subscription');
  return `/subscriptions/${subscriptions[0]}/resourceGroups/${resourceGroup}/providers/Microsoft.Compute/virtualMachines/${vm}`;
}

function listOf(flag: string, value: string | undefined): string[] | undefined {
  if (value === undefined) return undefined;
  const parts = value.split(',').map((part) => part.trim());
  if (parts.includes('')) throw new InputError(`--${flag}`, `${JSON.stringify(value)} has an empty part`);
  return parts;
}

function readPolicyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new InputError('--policy', cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
