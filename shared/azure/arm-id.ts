/** An ARM id of a resource directly under a resource group, in parts. Original casing is kept; compare {@link key}. */
export interface ArmId {
  /** As it came. */
  readonly id: string;
  /** `azure:` + the lower-cased id: Azure answers ids in varying case, sometimes within one answer. */
  readonly key: string;
  readonly subscription: string;
  readonly resourceGroup: string;
  /** Lower-cased `<provider>/<type>`: `microsoft.compute/disks`. */
  readonly type: string;
  readonly name: string;
  /** Lower-cased `<subscription>/<resource group>`: where owner names are looked up. */
  readonly place: string;
}

const PATTERN = /^\/subscriptions\/([^/]+)\/resourceGroups\/([^/]+)\/providers\/([^/]+\/[^/]+)\/([^/]+)$/i;

export const VM_TYPE = 'microsoft.compute/virtualmachines';
export const DISK_TYPE = 'microsoft.compute/disks';
export const NIC_TYPE = 'microsoft.network/networkinterfaces';

/** Undefined for anything else, child resources and scale-set instances included. */
export function parseArmId(id: string): ArmId | undefined {
  const match = PATTERN.exec(id);
  if (!match) return undefined;
  const [, subscription = '', resourceGroup = '', type = '', name = ''] = match;
  return {
    id,
    key: `azure:${id.toLowerCase()}`,
    subscription,
    resourceGroup,
    type: type.toLowerCase(),
    name,
    place: `${subscription}/${resourceGroup}`.toLowerCase(),
  };
}

/** {@link parseArmId}, and of exactly this type. */
export function parseArmIdOf(type: string, id: string): ArmId | undefined {
  const parsed = parseArmId(id);
  return parsed?.type === type ? parsed : undefined;
}

/** The id of a VM that is known by its name in a {@link ArmId.place}; undefined where either cannot be one. */
export function vmIdOf(place: string, name: string): string | undefined {
  const [subscription, resourceGroup, ...rest] = place.split('/');
  if (!subscription || !resourceGroup || rest.length > 0 || !isVmName(name)) return undefined;
  return `/subscriptions/${subscription}/resourceGroups/${resourceGroup}/providers/Microsoft.Compute/virtualMachines/${name}`;
}

/** Azure's rule for the names of virtual machine resources: 1–64 characters, these excepted, no leading `_`, no `.` or `-` at the end. */
export function isVmName(name: string): boolean {
  return /^(?!_)[^\\/"[\]:|<>+=;,?*@&\s%#]{1,64}$/.test(name) && !/[.-]$/.test(name);
}
