/**
 * US dollars per GiB and month, on-demand list prices of us-east-1 in 2026 (aws.amazon.com/ebs/pricing), without
 * provisioned IOPS and throughput: an estimate for a report, never an input to a decision.
 */
const PER_GIB: Readonly<Record<string, number>> = {
  gp3: 0.08,
  gp2: 0.1,
  io1: 0.125,
  io2: 0.125,
  st1: 0.045,
  sc1: 0.015,
  standard: 0.05,
};

export function volumeMonthlyCostUsd(volumeType: string | undefined, sizeGiB: number | undefined): number | undefined {
  const perGiB = PER_GIB[volumeType ?? ''];
  return perGiB === undefined || sizeGiB === undefined ? undefined : perGiB * sizeGiB;
}
