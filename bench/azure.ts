import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, loadS, row } from './figures.ts';
import { measureSweep, startSimulator, stop } from './processes.ts';

const ROOT = join(import.meta.dirname, '..');
const N = 1000;
const LATENCY_MS = 50;
/** A NIC's deletion takes about ten seconds on Azure, and pollers are told so. */
const NIC_PACE = ['--deletion-ms', '10000', '--retry-after', '10'];

/** ARM's buckets, 200 deletes and 10 a second, 250 reads and 25 a second: no run with these calls can be faster. */
function leastS(calls: Readonly<Record<string, number>>): { deletes: number; reads: number } {
  const count = (isCounted: (name: string) => boolean) =>
    Object.entries(calls).reduce((sum, [name, number]) => sum + (isCounted(name) ? number : 0), 0);
  const isDelete = (name: string) => name.endsWith('_Delete');
  const reads = count((name) => !isDelete(name) && !name.startsWith('ResourceGraph'));
  return { deletes: Math.max(0, (N - 200) / 10), reads: Math.max(0, (reads - 250) / 25) };
}

async function wall(): Promise<void> {
  for (const [kind, flag, pace] of [
    ['disk', '--orphan-disks', []],
    ['nic', '--orphan-nics', NIC_PACE],
  ] as const) {
    const simulator = await startSimulator('azure', flag, String(N), '--latency', String(LATENCY_MS), ...pace);
    const { wallS, result } = await measureSweep('azure', simulator.url, '--kind', kind);
    await stop(simulator);
    expect(result.counts.deleted, N);
    const calls = Object.values(result.calls).reduce((sum, count) => sum + count, 0);
    row(
      `wall, ${N} orphans (${kind})`,
      `${wallS.toFixed(1)} s`,
      `least ${leastS(result.calls).deletes} s by ARM's rate of deletes; ${calls} calls`,
    );
  }
}

async function rate(): Promise<void> {
  const simulator = await startSimulator(
    'azure',
    '--orphan-disks',
    String(N),
    '--throttle',
    '--latency',
    String(LATENCY_MS),
  );
  const { wallS, result } = await measureSweep('azure', simulator.url, '--kind', 'disk');
  await stop(simulator);
  expect(result.counts.deleted, N);
  const least = leastS(result.calls);
  const bestS = Math.max(least.deletes, least.reads);
  const throttled = (result.calls.Disks_Delete ?? 0) - N;
  row(
    "rate under ARM's buckets",
    `${((100 * bestS) / wallS).toFixed(1)} %`,
    `goal ≥ 95 %; ${wallS.toFixed(1)} s, least ${least.deletes} s by the deletes and ${least.reads} s by the reads; ${((100 * throttled) / (N + throttled)).toFixed(2)} % of the deletes throttled, goal < 2 %`,
  );
}

/** The deployed bundle, where it has been built: its entry point, and all that it may load later, at once. */
function load(): void {
  const folder = join(ROOT, 'dist/azure');
  if (!existsSync(join(folder, 'package.json'))) {
    console.log('load: skipped, dist/azure is not built');
    return;
  }
  const { main } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { main: string };
  const later = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.mjs'));
  for (const [what, names, goalS] of [
    [`load of ${main}`, [main], 0.1],
    ['load of all chunks at once', later, 0.25],
  ] as const) {
    const files = names.map((name) => join(folder, name));
    const size = files.reduce((sum, file) => sum + statSync(file).size, 0) / 1e6;
    row(what, `${loadS(files).toFixed(2)} s`, `goal ≤ ${goalS} s; ${size.toFixed(2)} MB`);
  }
}

export const AZURE_PARTS = { wall, rate, load } as const;
