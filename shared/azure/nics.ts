import type { NetworkInterface } from '@azure/arm-network';
import type { Hold, Resource } from '../core/model.ts';
import type { ResourceType } from '../core/ports.ts';
import { type ArmId, NIC_TYPE } from './arm-id.ts';
import { type ArmTypeContext, armType } from './arm-type.ts';
import { provisioned } from './disks.ts';

/**
 * Network interfaces, `network-interface`.
 *
 * ARM tells no creation time of one: only the generic resource list does (`$expand=createdTime`), which reads all NICs of
 * a group or subscription, the living ones too, and would have to be read again at each recheck. So none is given, and
 * the age counts from the first sighting, which can only make a NIC look younger than it is. Nor does Azure free a NIC
 * before its time: one that is reserved for a VM refuses the delete.
 */
export function networkInterfaces(context: ArmTypeContext): ResourceType {
  const network = () => context.clients.network();
  return armType<NetworkInterface>(
    {
      name: 'network-interface',
      kind: 'nic',
      armType: NIC_TYPE,
      group: 'NetworkInterfaces',
      client: network,
      pages: async (resourceGroup, options) =>
        (await network()).networkInterfaces.list(resourceGroup, options).byPage(),
      read: async (id, options) => {
        let raw: unknown;
        const onResponse = (response: { parsedBody?: unknown }) => {
          raw = response.parsedBody;
        };
        const nic = await (await network()).networkInterfaces.get(id.resourceGroup, id.name, {
          ...options,
          onResponse,
        });
        return withLink(nic, raw);
      },
      remove: async (id, options) => {
        const poller = (await network()).networkInterfaces.delete(id.resourceGroup, id.name, options);
        return () => poller.submitted();
      },
      idOf: (nic) => nic.id,
      toResource: toNic,
    },
    context,
  );
}

/** The property that marks a service's NIC, which the SDK's model leaves out: read from the raw answer, before each deletion. */
interface Linked {
  readonly linkedResourceType?: string;
}

function withLink(nic: NetworkInterface, raw: unknown): NetworkInterface & Linked {
  const properties = (raw as { properties?: Linked } | undefined)?.properties;
  return properties?.linkedResourceType ? { ...nic, linkedResourceType: properties.linkedResourceType } : nic;
}

/** A NIC as ARM shows it. */
function toNic(nic: NetworkInterface & Linked, id: ArmId): Resource {
  const attachedTo = nic.virtualMachine ? [nic.virtualMachine.id ?? 'a virtual machine'] : [];
  return {
    key: id.key,
    id: id.id,
    cloud: 'azure',
    type: 'network-interface',
    kind: 'nic',
    name: nic.name ?? id.name,
    place: id.place,
    tags: nic.tags ?? {},
    tagsIgnoreCase: true,
    state: nic.virtualMachine ? 'attached' : provisioned(nic.provisioningState),
    nativeState: `${nic.virtualMachine ? 'virtualMachine set' : 'no virtualMachine'}, ${nic.provisioningState ?? 'no provisioningState'}`,
    attachedTo,
    holds: holdsOf(nic),
    // Azure bills no interfaces; a public address that hangs on one is billed by itself.
    monthlyCostUsd: 0,
  };
}

function holdsOf(nic: NetworkInterface & Linked): Hold[] {
  const holds: Hold[] = [];
  const hold = (code: string, field: string, value: unknown) => {
    if (value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)) return;
    holds.push({ code, detail: `${field}=${describe(value)}` });
  };
  hold('private-endpoint', 'privateEndpoint', nic.privateEndpoint);
  hold('private-link-service', 'privateLinkService', nic.privateLinkService);
  hold('hosted-workload', 'hostedWorkloads', nic.hostedWorkloads);
  hold('hosted-workload', 'workloadType', nic.workloadType);
  hold('linked-resource', 'linkedResourceType', nic.linkedResourceType);
  hold('dscp-configuration', 'dscpConfiguration', nic.dscpConfiguration);
  hold('tap-configuration', 'tapConfigurations', nic.tapConfigurations);
  const linked = nic.ipConfigurations?.find((one) => one.privateLinkConnectionProperties);
  hold('private-endpoint', 'privateLinkConnectionProperties', linked?.name);
  return holds;
}

function describe(value: unknown): string {
  if (typeof value === 'string') return value;
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first === 'string') return first;
  const id = (first as { id?: unknown }).id;
  return typeof id === 'string' ? id : 'set';
}
