import type {
  DiskProperties,
  DiskSku,
  SnapshotProperties,
  SnapshotSku,
  VirtualMachineProperties,
} from '@azure/arm-compute';
import type { NetworkInterfacePropertiesFormat } from '@azure/arm-network';

/** A type of the SDK's model as it travels: dates are texts, and nothing is read-only to the one who answers. */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { -readonly [Key in keyof T]: Wire<T[Key]> }
      : T;

/** ARM spells this one with a capital, the SDK does not. */
export type DiskWire = Omit<Wire<DiskProperties>, 'lastOwnershipUpdateTime'> & { LastOwnershipUpdateTime?: string };
/** References to NICs hold their properties nested on the wire. */
export type VmWire = Omit<Wire<VirtualMachineProperties>, 'networkProfile'> & {
  networkProfile: {
    networkInterfaces: { id: string; properties: { primary?: boolean; deleteOption?: 'Delete' | 'Detach' } }[];
  };
};
/** `linkedResourceType` is answered by ARM and missing in the SDK's model; `ipConfigurations` are nested on the wire. */
export type NicWire = Omit<Wire<NetworkInterfacePropertiesFormat>, 'ipConfigurations'> & {
  ipConfigurations: {
    id?: string;
    name: string;
    properties: { primary?: boolean; privateIPAddress?: string; subnet?: { id: string } };
  }[];
  linkedResourceType?: string;
};

interface Tracked<Properties> {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly location: string;
  tags: Readonly<Record<string, string>>;
  zones?: string[];
  properties: Properties;
}

export interface DiskBody extends Tracked<DiskWire> {
  sku: Wire<DiskSku>;
  managedBy?: string | undefined;
  managedByExtended?: string[] | undefined;
}
/** What a disk held, kept beyond its deletion. */
export interface SnapshotBody extends Tracked<Wire<SnapshotProperties>> {
  sku: Wire<SnapshotSku>;
}
export interface NicBody extends Tracked<NicWire> {
  readonly etag: string;
}
export type VmBody = Tracked<VmWire>;
export type Body = DiskBody | NicBody | SnapshotBody | VmBody;

export const TYPES = {
  disk: 'Microsoft.Compute/disks',
  nic: 'Microsoft.Network/networkInterfaces',
  snapshot: 'Microsoft.Compute/snapshots',
  vm: 'Microsoft.Compute/virtualMachines',
} as const;
export type Kind = keyof typeof TYPES;

export function kindOf(armType: string): Kind | undefined {
  return (Object.keys(TYPES) as Kind[]).find((kind) => TYPES[kind].toLowerCase() === armType.toLowerCase());
}

export const LOCATION = 'westeurope';
export const TENANT = '7e4a4700-0000-4000-8000-000000000001';
/** What a node's resources carry that machine-controller-manager made. */
export const mcmTags = (cluster: string) => ({
  [`kubernetes.io-cluster-${cluster}`]: '1',
  'kubernetes.io-role-node': '1',
});

/** ARM writes times with seven digits of a second. */
export const armTime = (date: Date) => `${date.toISOString().slice(0, -1)}0000+00:00`;
