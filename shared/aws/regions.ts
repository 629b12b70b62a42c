import { DescribeRegionsCommand, type EC2Client } from '@aws-sdk/client-ec2';
import { InputError } from '../core/errors.ts';
import { called, listOf } from './describe.ts';

export interface RegionChoice {
  readonly enabled: readonly string[];
  readonly skipped: readonly { readonly scope: string; readonly reason: string }[];
}

/**
 * The regions of a request that this account can use. One that is not opted in would answer every call with
 * `AuthFailure`: it is skipped, and the report says so.
 * @throws InputError naming a region that does not exist; CloudError
 */
export async function chooseRegions(
  ec2: EC2Client,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<RegionChoice> {
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
