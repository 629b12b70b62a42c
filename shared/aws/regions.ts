import { DescribeRegionsCommand, type EC2Client } from '@aws-sdk/client-ec2';
import { InputError } from '../core/errors.ts';
import type { ScopeRequest } from '../core/ports.ts';
import { called, listOf } from './describe.ts';

interface RegionChoice {
  readonly enabled: readonly string[];
  readonly skipped: readonly { readonly scope: string; readonly reason: string }[];
}

/**
 * The regions of a request, within the deployment's.
 * @param home  where this very process runs: as the only one it needs no asking
 * @param own  the deployment's, or `['all']`
 * @throws InputError naming a region that is not one of the deployment's, or that does not exist; CloudError
 */
export async function regionsOf(
  request: ScopeRequest,
  { region: home, regions: own }: { readonly region: string; readonly regions?: readonly string[] },
  ec2: () => EC2Client,
  signal: AbortSignal,
): Promise<RegionChoice> {
  const covered = own?.includes('all') ? undefined : own;
  if (request.scopeIds) {
    const named = request.scopeIds.map(regionOfScope);
    const isCovered = (region: string) => covered?.includes(region) !== false;
    const foreign = named.filter((region) => !isCovered(region));
    const reason = 'not a region of this deployment';
    return {
      enabled: named.filter(isCovered),
      skipped: foreign.map((region) => ({ scope: `aws:${region}`, reason })),
    };
  }
  const wanted = narrowed(request.regions ?? own ?? [home], covered);
  if (wanted.length === 0) throw new InputError('region', 'name at least one');
  if (wanted.length === 1 && wanted[0] === home) return { enabled: wanted, skipped: [] };
  return chooseRegions(ec2(), wanted, signal);
}

/** `all` of a deployment are its own. */
function narrowed(wanted: readonly string[], covered: readonly string[] | undefined): readonly string[] {
  if (!covered) return wanted;
  const foreign = wanted.find((region) => region !== 'all' && !covered.includes(region));
  if (foreign !== undefined) throw new InputError('region', `${foreign} is not one of this deployment`);
  return wanted.includes('all') ? covered : wanted;
}

function regionOfScope(scopeId: string): string {
  const region = /^aws:([a-z0-9-]+)$/.exec(scopeId)?.[1];
  if (region === undefined) throw new InputError('scopeId', `${scopeId} is none of AWS`);
  return region;
}

/**
 * The regions of a request that this account can use. One that is not opted in would answer every call with
 * `AuthFailure`: it is skipped, and the report says so.
 * @throws InputError naming a region that does not exist; CloudError
 */
async function chooseRegions(ec2: EC2Client, wanted: readonly string[], signal: AbortSignal): Promise<RegionChoice> {
  const answer = await called('DescribeRegions', () =>
    ec2.send(new DescribeRegionsCommand({ AllRegions: true }), { abortSignal: signal }),
  );
  const status = new Map(
    listOf(answer.Regions, 'DescribeRegions').map((one) => [
      one.RegionName ?? '',
      one.OptInStatus ?? 'opt-in-not-required',
    ]),
  );
  const names = wanted.includes('all') ? [...status.keys()].sort() : [...new Set(wanted)];
  const unknown = names.find((name) => !status.has(name));
  if (unknown !== undefined) throw new InputError('region', `${unknown} is no region of AWS`);
  const off = names.filter((name) => status.get(name) === 'not-opted-in');
  return {
    enabled: names.filter((name) => !off.includes(name)),
    skipped: off.map((name) => ({ scope: `aws:${name}`, reason: 'this account has not opted in to the region' })),
  };
}
