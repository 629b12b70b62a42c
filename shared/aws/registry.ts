import { InputError } from '../core/errors.ts';
import type { Cloud, CloudScope, OpenedScopes, ScopeRequest } from '../core/ports.ts';
import { DELETES_PER_SECOND, RegionClients, RequestCounter } from './clients.ts';
import { clusterApi } from './conventions/cluster-api.ts';
import { gardenerMcm } from './conventions/gardener-mcm.ts';
import { vpcCni } from './conventions/vpc-cni.ts';
import { networkInterfaces } from './enis.ts';
import { parseEc2Event } from './events.ts';
import { groupMembers } from './groups.ts';
import { identify, parseOwnerTag } from './ids.ts';
import { Ec2Owners } from './owners.ts';
import type { RegionContext } from './region-context.ts';
import { regionsOf } from './regions.ts';
import { isCandidate } from './tags.ts';
import { ebsVolumes } from './volumes.ts';

export interface AwsOptions {
  /** Where account-wide questions are asked, and what is swept when a request names no region. */
  readonly region: string;
  /** The regions of a deployment, or `['all']`: meant when a request names none, and no others may be asked for. */
  readonly regions?: readonly string[];
  /** Deletes a second once EC2 has throttled one; until then nothing is held back. 10 by default. */
  readonly deletesPerSecond?: number;
}

/** ENIs before volumes: an ENI is what blocks the deletion of its subnet and security groups, a volume blocks nothing. */
const TYPES = [networkInterfaces, ebsVolumes];

/** Asked in turn; Karpenter has no file of its own here, since it tags no resource with its VM: claims attribute those. */
const CONVENTIONS = [gardenerMcm, clusterApi, vpcCni];

/** Under EC2's throttle more at once brings nothing, and what is on its way when it is met is throttled. */
const DELETE_CONCURRENCY = 12;
/** One call reads so many ids. */
const RECHECK_BATCH = 200;

export function aws(options: AwsOptions): Cloud {
  const clients = new Map<string, RegionClients>();
  const clientsOf = (region: string) => {
    const known = clients.get(region) ?? new RegionClients(region, options.deletesPerSecond ?? DELETES_PER_SECOND);
    clients.set(region, known);
    return known;
  };
  return {
    name: 'aws',
    parseEvent: parseEc2Event,
    open: async (request, signal) => {
      refuseForeign(request);
      const counter = new RequestCounter();
      const { enabled, skipped } = await regionsOf(
        request,
        options,
        () => clientsOf(options.region).ec2(counter),
        signal,
      );
      const scopes = enabled.map((region, index) => {
        // What was asked about regions counts with the first of them.
        const own = index === 0 ? counter : new RequestCounter();
        return openRegion(clientsOf(region), own, request, signal);
      });
      return { scopes, skipped } satisfies OpenedScopes;
    },
  };
}

function refuseForeign({ subscriptions }: ScopeRequest): void {
  if (subscriptions !== undefined) throw new InputError('subscription', 'AWS has regions');
}

function openRegion(
  clients: RegionClients,
  counter: RequestCounter,
  request: ScopeRequest,
  signal: AbortSignal,
): CloudScope {
  const { region } = clients;
  const ec2 = clients.ec2(counter);
  const { resourceGroup } = request;
  let members: Promise<ReadonlySet<string>> | undefined;
  const context: RegionContext = {
    region,
    ec2,
    ...(resourceGroup !== undefined && {
      members: () => {
        members ??= groupMembers(region, resourceGroup, counter, signal);
        return members;
      },
    }),
  };
  return {
    cloud: 'aws',
    id: `aws:${region}`,
    types: TYPES.map((create) => create(context)),
    owners: new Ec2Owners(ec2, region),
    conventions: CONVENTIONS,
    parseOwnerTag,
    isCandidate,
    identify: (id) => identify(region, id),
    calls: counter,
    deleteConcurrency: DELETE_CONCURRENCY,
    recheckBatch: RECHECK_BATCH,
  };
}
