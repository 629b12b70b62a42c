import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');

export interface Simulator {
  readonly url: string;
  readonly process: ChildProcess;
}

export type SimulatedCloud = 'aws' | 'azure';

/** A cloud's simulator in a process of its own, so that its work is not measured as ours. */
export async function startSimulator(cloud: SimulatedCloud, ...args: string[]): Promise<Simulator> {
  const child = spawn(process.execPath, [join(ROOT, 'simulator', cloud, 'main.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { url } = JSON.parse(line.toString()) as { url: string };
  return { url, process: child };
}

export interface Measured {
  readonly wallS: number;
  readonly peakMiB: number;
  readonly result: { readonly counts: Record<string, number>; readonly calls: Record<string, number> };
}

/** Heap of a small function: the rest of 256 MB is Node itself and what is on its way. Without a limit Node collects late, and measures only that. */
const HEAP_MIB = 64;

/** Bundled as the functions are, with that cloud's SDK alone: what strips types from sources is not measured. */
function bundled(cloud: SimulatedCloud): string {
  const outfile = join(ROOT, `dist/bench/one-sweep-${cloud}.mjs`);
  buildSync({
    entryPoints: [join(ROOT, 'bench/one-sweep.ts')],
    outfile,
    bundle: true,
    external: [`../shared/${cloud === 'aws' ? 'azure' : 'aws'}/registry.ts`],
    platform: 'node',
    format: 'esm',
    minify: true,
    mainFields: ['module', 'main'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  return outfile;
}

/** One sweep in a process of its own; its peak memory is what the operating system counted. */
export async function measureSweep(cloud: SimulatedCloud, url: string, ...args: string[]): Promise<Measured> {
  const env = {
    ...process.env,
    AWS_ENDPOINT_URL: url,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: 'us-east-1',
    AZURE_RESOURCE_MANAGER_ENDPOINT: url,
    SUBSCRIPTION: '11111111-2222-3333-4444-555555555555',
  };
  const child = spawn(
    process.execPath,
    [`--max-old-space-size=${HEAP_MIB}`, '--max-semi-space-size=4', bundled(cloud), '--cloud', cloud, ...args],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    },
  );
  let output = '';
  child.stdout.on('data', (data) => {
    output += String(data);
  });
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`the sweep ended with ${code}`);
  return JSON.parse(output) as Measured;
}

export async function stop(simulator: Simulator): Promise<void> {
  simulator.process.kill();
  await once(simulator.process, 'exit');
}
