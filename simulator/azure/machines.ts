import { mcmTags, type VmWire } from './shapes.ts';

/** Who made a machine, which shows in its names and tags: Gardener's machine-controller-manager, Karpenter, Cluster API. */
export type MachineStyle = 'mcm' | 'karpenter' | 'capi';

export interface VmSpec {
  readonly group?: string;
  /** Whose names and tags it has. Default: `mcm`. */
  readonly style?: MachineStyle;
  /** Cluster of the tags that its controller sets. Default: the group's name, lower-cased. */
  readonly cluster?: string;
  /** Default: 1; Karpenter makes none. */
  readonly dataDisks?: number;
  /** Deletes NIC and disks with the VM. Default: they stay. */
  readonly cascade?: boolean;
}

export interface MadeVm {
  readonly vm: string;
  readonly nic: string;
  readonly disks: readonly string[];
}

/** What a controller calls the parts of a machine, and the tags that all of them carry. */
export interface MachineParts {
  readonly tags: Readonly<Record<string, string>>;
  readonly nic: string;
  readonly osDisk: string;
  readonly dataDisk: (lun: number) => string;
}

/** By the name of the VM; Karpenter's own begin with `aks-`. */
export function partsOf(style: MachineStyle, vm: string, cluster: string): MachineParts {
  switch (style) {
    case 'karpenter':
      return {
        tags: { 'karpenter.azure.com_cluster': cluster, 'karpenter.sh_nodepool': 'default' },
        nic: vm,
        osDisk: vm,
        dataDisk: (lun) => `${vm}-data-${lun}`,
      };
    case 'capi':
      return {
        tags: { [`sigs.k8s.io_cluster-api-provider-azure_cluster_${cluster}`]: 'owned' },
        nic: `${vm}-nic`,
        osDisk: `${vm}_OSDisk`,
        dataDisk: (lun) => `${vm}_data${lun}`,
      };
    case 'mcm':
      return {
        tags: mcmTags(cluster),
        nic: `${vm}-nic`,
        osDisk: `${vm}-os-disk`,
        dataDisk: (lun) => `${vm}-${lun}-data-disk`,
      };
  }
}

/** What a VM says of its NIC and disks, by their ids, and of what becomes of them after it. */
export function profilesOf(
  nic: string,
  os: string,
  data: readonly string[],
  cascade: boolean,
): Pick<VmWire, 'networkProfile' | 'storageProfile'> {
  const deleteOption = cascade ? 'Delete' : 'Detach';
  return {
    networkProfile: { networkInterfaces: [{ id: nic, properties: { primary: true, deleteOption } }] },
    storageProfile: {
      osDisk: {
        name: os.slice(os.lastIndexOf('/') + 1),
        createOption: 'FromImage',
        osType: 'Linux',
        managedDisk: { id: os },
        deleteOption,
      },
      dataDisks: data.map((id, lun) => ({ lun, createOption: 'Attach', managedDisk: { id }, deleteOption })),
    },
  };
}
