import { statSync } from 'node:fs';
import { join } from 'node:path';
import { AWS_FUNCTIONS, build } from '../infra/build.ts';
import { expect, loadS, row } from './figures.ts';
import { measureSweep, startSimulator, stop } from './processes.ts';

const ROOT = join(import.meta.dirname, '..');
const N = 1000;
const LATENCY_MS = 50;

async function wall(): Promise<void> {
  for (const [kind, flag, goalS] of [
    ['disk', '--orphan-volumes', 6],
    ['nic', '--orphan-enis', 15],
  ] as const) {
    const simulator = await startSimulator('aws', flag, String(N), '--latency', String(LATENCY_MS));
    const { wallS, result } = await measureSweep('aws', simulator.url, '--kind', kind);
    await stop(simulator);
    expect(result.counts.deleted, N);
    const calls = Object.values(result.calls).reduce((sum, count) => sum + count, 0);
    const serialS = (calls * LATENCY_MS) / 1000;
    row(
      `wall, ${N} orphans (${kind})`,
      `${wallS.toFixed(1)} s`,
      `goal ${goalS} s; ${(serialS / wallS).toFixed(1)} × faster than its ${calls} calls one by one`,
    );
  }
}

async function rate(): Promise<void> {
  const count = 1000;
  const simulator = await startSimulator(
    'aws',
    '--orphan-volumes',
    String(count),
    '--throttle',
    '--latency',
    String(LATENCY_MS),
  );
  const { wallS, result } = await measureSweep('aws', simulator.url, '--kind', 'disk');
  await stop(simulator);
  expect(result.counts.deleted, count);
  const bestS = (count - 100) / 10;
  const throttled = (result.calls.DeleteVolume ?? 0) - count;
  row(
    'rate under 100 + 10/s',
    `${((100 * bestS) / wallS).toFixed(1)} %`,
    `goal ≥ 95 %; ${((100 * throttled) / (count + throttled)).toFixed(2)} % of the deletes throttled, goal < 2 %`,
  );
}

async function memory(): Promise<void> {
  const peaks: number[] = [];
  for (const count of [100_000, 1_000_000]) {
    const simulator = await startSimulator('aws', '--kept-volumes', String(count));
    const { peakMiB, result } = await measureSweep('aws', simulator.url, '--kind', 'disk');
    await stop(simulator);
    expect(result.counts.listed, count);
    expect(result.calls.DescribeVolumes, count / 1000);
    peaks.push(peakMiB);
    row(`peak memory, ${count.toLocaleString('en')} free`, `${Math.round(peakMiB)} MiB`, 'goal ≤ 256 MiB, flat');
  }
  row('ten times as many', `× ${((peaks[1] ?? 0) / (peaks[0] ?? 1)).toFixed(2)}`, 'goal × 1');
}

function bundles(): void {
  build(['aws']);
  for (const name of AWS_FUNCTIONS) {
    const file = join(ROOT, 'dist/aws', name, 'index.mjs');
    row(
      `bundle ${name}`,
      `${(statSync(file).size / 1e6).toFixed(2)} MB`,
      `goal ≤ 1.3 MB; loads in ${loadS([file]).toFixed(2)} s, goal ≤ 0.2 s`,
    );
  }
}

export const AWS_PARTS = { wall, rate, memory, bundles } as const;
