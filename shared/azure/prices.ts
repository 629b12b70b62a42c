/**
 * Managed disks' public list prices in East US, US dollars a month, pay-as-you-go, as published at
 * azure.microsoft.com/pricing/details/managed-disks in 2025. An estimate for reports: nothing is decided on it.
 * Fixed-size tiers are billed by the next tier that holds the disk: [up to GiB, dollars].
 */
const PREMIUM = [
  [4, 0.6],
  [8, 1.2],
  [16, 2.4],
  [32, 5.28],
  [64, 10.21],
  [128, 19.71],
  [256, 38.02],
  [512, 73.22],
  [1024, 135.17],
  [2048, 259.05],
  [4096, 495.57],
  [8192, 946.08],
  [16384, 1802.06],
  [32767, 3604.11],
] as const;
const STANDARD_SSD = [
  [4, 0.3],
  [8, 0.6],
  [16, 1.2],
  [32, 2.4],
  [64, 4.8],
  [128, 9.6],
  [256, 19.2],
  [512, 38.4],
  [1024, 76.8],
  [2048, 153.6],
  [4096, 307.2],
  [8192, 614.4],
  [16384, 1228.8],
  [32767, 2457.6],
] as const;
const STANDARD_HDD = [
  [32, 1.54],
  [64, 3.01],
  [128, 5.89],
  [256, 11.33],
  [512, 21.76],
  [1024, 40.96],
  [2048, 77.83],
  [4096, 143.36],
  [8192, 262.14],
  [16384, 524.29],
  [32767, 1048.58],
] as const;

type Tiers = readonly (readonly [number, number])[];

/** Zone-redundant disks cost half as much again. */
const TIERED: Readonly<Record<string, { readonly tiers: Tiers; readonly factor: number }>> = {
  premium_lrs: { tiers: PREMIUM, factor: 1 },
  premium_zrs: { tiers: PREMIUM, factor: 1.5 },
  standardssd_lrs: { tiers: STANDARD_SSD, factor: 1 },
  standardssd_zrs: { tiers: STANDARD_SSD, factor: 1.5 },
  standard_lrs: { tiers: STANDARD_HDD, factor: 1 },
};

/** Billed by what is provisioned, per GiB, IOPS and MB/s; Premium v2 includes 3,000 IOPS and 125 MB/s. */
const PROVISIONED: Readonly<
  Record<string, { gib: number; iops: number; mbps: number; freeIops: number; freeMbps: number }>
> = {
  premiumv2_lrs: { gib: 0.081, iops: 0.0052, mbps: 0.041, freeIops: 3000, freeMbps: 125 },
  ultrassd_lrs: { gib: 0.12, iops: 0.0496, mbps: 0.35, freeIops: 0, freeMbps: 0 },
};

export interface PricedDisk {
  readonly sku?: string;
  readonly sizeGiB?: number;
  readonly iops?: number;
  readonly mbps?: number;
}

/** US dollars a month; undefined for a kind of disk or a size that is not known. */
export function diskMonthlyUsd({ sku, sizeGiB, iops, mbps }: PricedDisk): number | undefined {
  if (sku === undefined || sizeGiB === undefined) return undefined;
  const name = sku.toLowerCase();
  const tiered = TIERED[name];
  if (tiered) {
    const tier = tiered.tiers.find(([upTo]) => sizeGiB <= upTo);
    return tier && cents(tier[1] * tiered.factor);
  }
  const rate = PROVISIONED[name];
  if (!rate) return undefined;
  const extraIops = Math.max(0, (iops ?? 0) - rate.freeIops);
  const extraMbps = Math.max(0, (mbps ?? 0) - rate.freeMbps);
  return cents(sizeGiB * rate.gib + extraIops * rate.iops + extraMbps * rate.mbps);
}

const cents = (usd: number) => Math.round(usd * 100) / 100;
