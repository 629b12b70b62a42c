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

/** In flight at once. A NIC's deletion takes about ten seconds, so ARM's ten a second need about a hundred. */
const DELETE_CONCURRENCY = 100;

const SUBSCRIPTION = /^[0-9a-z][0-9a-z-]{0,63}$/i;
const RESOURCE_GROUP = /^[-\w.()\p{L}\p{N}]{1,90}$/u;

/** Azure. @throws InputError on an endpoint that is neither https nor on loopback */
export function azure(options: AzureOptions): Cloud {
  const endpoint = endpointOf(options);
  const credential = credentialOf(options, endpoint);
  return {
    name: 'azure',
    open: async (request) => {
      const subscriptions = subscriptionsOf(request, options);
      const group = resourceGroupOf(request);
      const graph = new GraphCandidates(subscriptions);
      const scopes = subscriptions.map((subscription) => {
        const clients = new ArmClients(subscription, options, endpoint, credential);
        return scopeOf({ clients, graph, place: group && `${subscription}/${group.toLowerCase()}` });
      });
      return { scopes, skipped: [] } satisfies OpenedScopes;
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
  };
}

const TYPE_NAMES: Readonly<Record<string, string>> = { [DISK_TYPE]: 'managed-disk', [NIC_TYPE]: 'network-interface' };

function identify(text: string) {
  const id = parseArmId(text);
  const type = id && TYPE_NAMES[id.type];
  return type ? { key: id.key, id: id.id, type } : undefined;
}

/** Lower-cased, each once, in the order given. */
function subscriptionsOf(request: ScopeRequest, options: AzureOptions): string[] {
  if (request.regions !== undefined && request.regions.length > 0)
    throw new InputError('regions', 'Azure is asked by subscription');
  const ofVm = request.vm === undefined ? undefined : parseArmIdOf(VM_TYPE, request.vm)?.subscription;
  if (request.vm?.includes('/') && ofVm === undefined)
    throw new InputError('vm', 'must be a name or the id of a virtual machine');
  const asked = request.subscriptions ?? (ofVm === undefined ? options.subscriptions : [ofVm]) ?? [];
  if (asked.length === 0) throw new InputError('subscriptions', 'name at least one');
  const wrong = asked.find((one) => !SUBSCRIPTION.test(one));
  if (wrong !== undefined) throw new InputError('subscriptions', `${JSON.stringify(wrong)} is no subscription id`);
  const distinct = [...new Set(asked.map((one) => one.toLowerCase()))];
  if (ofVm === undefined) return distinct;
  if (!distinct.includes(ofVm.toLowerCase())) throw new InputError('vm', 'lies in none of the subscriptions asked for');
  return [ofVm.toLowerCase()];
}

function resourceGroupOf({ resourceGroup }: ScopeRequest): string | undefined {
  if (resourceGroup === undefined) return undefined;
  if (!RESOURCE_GROUP.test(resourceGroup) || resourceGroup.endsWith('.')) {
    throw new InputError('resourceGroup', `${JSON.stringify(resourceGroup)} is no name of a resource group`);
  }
  return resourceGroup;
}
