import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { measureSweep, startSimulator, stop } from './processes.ts';

/**
 * `node bench/azure.ts [wall] [rate] [load]`, all without a name. Counts are exact and are checked; times are reported
 * beside the least time that ARM's own buckets allow for the same calls, since only their ratio means anything elsewhere.
 */
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

/** Median of five processes. */
function loadS(files: readonly string[]): number {
  const script = `const t = performance.now(); await Promise.all(${JSON.stringify(files)}.map((file) => import(file))); console.log(performance.now() - t);`;
  const times = Array.from({ length: 5 }, () => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    if (!(Number(stdout) > 0)) throw new Error(`the bundle did not load: ${stderr}`);
    return Number(stdout);
  });
  return (times.sort((a, b) => a - b)[2] ?? Number.NaN) / 1000;
}

function row(what: string, figure: string, beside: string): void {
  console.log(`${what.padEnd(34)} ${figure.padStart(10)}   ${beside}`);
}

function expect(actual: number | undefined, wanted: number): void {
  if (actual !== wanted) throw new Error(`counted ${actual}, expected ${wanted}`);
}

const PARTS = { wall, rate, load } as const;
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !Object.hasOwn(PARTS, name));
if (unknown !== undefined) {
  console.error(`${unknown}: none of ${Object.keys(PARTS).join(', ')}`);
  process.exit(2);
}
for (const [name, part] of Object.entries(PARTS)) if (asked.length === 0 || asked.includes(name)) await part();
