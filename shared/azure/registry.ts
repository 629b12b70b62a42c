import { InputError } from '../core/errors.ts';
import type { Cloud, CloudScope, OpenedScopes, ScopeRequest } from '../core/ports.ts';
import { DISK_TYPE, NIC_TYPE, parseArmId, parseArmIdOf, VM_TYPE } from './arm-id.ts';
import type { ArmTypeContext } from './arm-type.ts';
import { ArmClients, type AzureOptions, credentialOf, endpointOf } from './clients.ts';
import { conventions } from './conventions.ts';
import { managedDisks } from './disks.ts';
import { parseAzureEvent } from './events.ts';
import { networkInterfaces } from './nics.ts';
import { AzureOwners, parseOwnerTag } from './owners.ts';
import { GraphCandidates } from './resource-graph.ts';
import { isCandidate } from './tags.ts';

/**
 * Resource types in the order of deletion. NICs first: they are what blocks the deletion of a subnet or a resource
 * group, and no disk waits for one.
 */
const TYPES = [networkInterfaces, managedDisks];

/** In flight at once. A NIC's deletion takes about ten seconds, so ARM's ten a second need more than a hundred. */
const DELETE_CONCURRENCY = 160;
/** ARM reads one at a time. */
const RECHECK_BATCH = 10;

const SUBSCRIPTION = /^[0-9a-z][0-9a-z-]{0,63}$/i;
const RESOURCE_GROUP = /^[-\w.()\p{L}\p{N}]{1,90}$/u;

/** Azure. @throws InputError on an endpoint that is neither https nor on loopback */
export function azure(options: AzureOptions): Cloud {
  const endpoint = endpointOf(options);
  const credential = credentialOf(options, endpoint);
  return {
    name: 'azure',
    open: async (request) => {
      const { subscriptions, skipped } = subscriptionsOf(request, options);
      const group = resourceGroupOf(request);
      const graph = new GraphCandidates(subscriptions);
      const scopes = subscriptions.map((subscription) => {
        const clients = new ArmClients(subscription, options, endpoint, credential);
        return scopeOf({ clients, graph, place: group && `${subscription}/${group.toLowerCase()}` });
      });
      return { scopes, skipped };
    },
    parseEvent: parseAzureEvent,
  };
}

function scopeOf(context: ArmTypeContext): CloudScope {
  const { clients, place } = context;
  return {
    cloud: 'azure',
    id: `azure:${clients.subscription}`,
    types: TYPES.map((create) => create(context)),
    owners: new AzureOwners(clients, place),
    conventions,
    parseOwnerTag,
    isCandidate,
    identify,
    calls: clients.calls,
    deleteConcurrency: DELETE_CONCURRENCY,
    recheckBatch: RECHECK_BATCH,
  };
}

/** The scope that an ARM id of a VM, NIC or disk belongs to, for a caller that knows no more than the id. */
export function scopeIdOf(id: string): string | undefined {
  const subscription = parseArmId(id)?.subscription.toLowerCase();
  return subscription === undefined ? undefined : `azure:${subscription}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = { [DISK_TYPE]: 'managed-disk', [NIC_TYPE]: 'network-interface' };

function identify(text: string) {
  const id = parseArmId(text);
  const type = id && TYPE_NAMES[id.type];
  return type ? { key: id.key, id: id.id, type } : undefined;
}

/** Lower-cased, each once, in the order given; what the deployment does not cover is refused, or skipped where work names it. */
function subscriptionsOf(request: ScopeRequest, { subscriptions: own }: AzureOptions): Subscriptions {
  if (request.regions !== undefined && request.regions.length > 0) {
    throw new InputError('regions', 'Azure is asked by subscription');
  }
  const covered = own === undefined || own.length === 0 ? undefined : lowered(own);
  if (request.scopeIds !== undefined) {
    const named = checked('scopeIds', request.scopeIds.map(subscriptionOfScope));
    const skipped = named.filter((one) => covered?.includes(one) === false);
    const reason = 'not a subscription of this deployment';
    return {
      subscriptions: named.filter((one) => !skipped.includes(one)),
      skipped: skipped.map((one) => ({ scope: `azure:${one}`, reason })),
    };
  }
  const ofVm = request.vm === undefined ? undefined : parseArmIdOf(VM_TYPE, request.vm)?.subscription.toLowerCase();
  if (request.vm?.includes('/') && ofVm === undefined) {
    throw new InputError('vm', 'must be a name or the id of a virtual machine');
  }
  const asked = request.subscriptions ?? (ofVm === undefined ? covered : [ofVm]) ?? [];
  if (asked.length === 0) throw new InputError('subscriptions', 'name at least one');
  const distinct = checked('subscriptions', asked);
  const foreign = distinct.find((one) => covered?.includes(one) === false);
  if (foreign !== undefined) throw new InputError('subscriptions', `${foreign} is not one of this deployment`);
  if (ofVm === undefined) return { subscriptions: distinct, skipped: [] };
  if (!distinct.includes(ofVm)) throw new InputError('vm', 'lies in none of the subscriptions asked for');
  return { subscriptions: [ofVm], skipped: [] };
}

interface Subscriptions {
  readonly subscriptions: readonly string[];
  readonly skipped: OpenedScopes['skipped'];
}

function subscriptionOfScope(scopeId: string): string {
  if (!scopeId.startsWith('azure:'))
    throw new InputError('scopeIds', `${JSON.stringify(scopeId)} is no scope of Azure`);
  return scopeId.slice('azure:'.length);
}

function checked(field: string, subscriptions: readonly string[]): string[] {
  const wrong = subscriptions.find((one) => !SUBSCRIPTION.test(one));
  if (wrong !== undefined) throw new InputError(field, `${JSON.stringify(wrong)} is no subscription id`);
  return lowered(subscriptions);
}

const lowered = (texts: readonly string[]) => [...new Set(texts.map((one) => one.toLowerCase()))];

function resourceGroupOf({ resourceGroup }: ScopeRequest): string | undefined {
  if (resourceGroup === undefined) return undefined;
  if (!RESOURCE_GROUP.test(resourceGroup) || resourceGroup.endsWith('.')) {
    throw new InputError('resourceGroup', `${JSON.stringify(resourceGroup)} is no name of a resource group`);
  }
  return resourceGroup;
}
