/**
 * Bundles what is deployed: `node infra/build.ts [aws] [azure] [cli]` writes `dist/<target>`. Without a name every target
 * that has entry points is built.
 */
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type BuildOptions, buildSync } from 'esbuild';

const ROOT = join(import.meta.dirname, '..');

/** The functions of one deployment on AWS; each has its entry `functions/aws/<name>.ts` and its own asset `dist/aws/<name>`. */
export const AWS_FUNCTIONS = ['vm-event', 'schedule', 'invoke', 'reap'] as const;
export type AwsFunction = (typeof AWS_FUNCTIONS)[number];

/** Where sources are read and bundles are written; tests point it elsewhere. */
export interface BuildPlaces {
  /** Folder that holds `functions/` and `cli/`. */
  readonly source?: string;
  /** Folder that gets `aws/`, `azure/` and `cli/`. */
  readonly out?: string;
}

interface Target {
  readonly entries: readonly string[];
  build(source: string, out: string): void;
}

/** Some packages are CommonJS and call `require` for Node's own modules, which an ES module has only if it makes one. */
const REQUIRE_BANNER =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

const COMMON: BuildOptions = {
  bundle: true,
  platform: 'node',
  minify: true,
  sourcemap: 'linked',
  // Stack traces need positions and names only; the sources are in the repository.
  sourcesContent: false,
  legalComments: 'none',
  // The packages' ES modules: smaller, faster to load, and without dynamic requires of Node's modules.
  mainFields: ['module', 'main'],
  logLevel: 'warning',
};

const TARGETS: Readonly<Record<string, Target>> = {
  aws: { entries: AWS_FUNCTIONS.map((name) => `functions/aws/${name}.ts`), build: bundleAws },
  azure: { entries: ['functions/azure/main.ts'], build: bundleAzure },
  cli: { entries: ['cli/main.ts'], build: bundleCli },
};

/**
 * Builds the named targets, or all that have entry points, and returns their names.
 * @throws Error when a name is unknown, a named target lacks an entry point, or a bundle does not build
 */
export function build(names: readonly string[] = [], places: BuildPlaces = {}): string[] {
  const source = places.source ?? ROOT;
  const out = places.out ?? join(ROOT, 'dist');
  const chosen = names.length > 0 ? names : present(source);
  if (chosen.length === 0) throw new Error(`no target has an entry point in ${source}`);
  // Everything is checked before anything is written: half a build must not look like a whole one.
  const targets = chosen.map((name) => ({ name, target: targetOf(name, source) }));
  for (const { name, target } of targets) {
    rmSync(join(out, name), { recursive: true, force: true });
    target.build(source, join(out, name));
  }
  return [...chosen];
}

function present(source: string): string[] {
  return Object.entries(TARGETS)
    .filter(([, { entries }]) => entries.some((entry) => existsSync(join(source, entry))))
    .map(([name]) => name);
}

function targetOf(name: string, source: string): Target {
  const target = Object.hasOwn(TARGETS, name) ? TARGETS[name] : undefined;
  if (!target) throw new Error(`unknown target ${name}: one of ${Object.keys(TARGETS).join(', ')}`);
  const missing = target.entries.filter((entry) => !existsSync(join(source, entry)));
  if (missing.length > 0) throw new Error(`target ${name} lacks ${missing.join(', ')}`);
  return target;
}

/** One self-contained folder a function, so that a function's asset changes only with its own code. */
function bundleAws(source: string, out: string): void {
  for (const name of AWS_FUNCTIONS) {
    buildSync({
      ...COMMON,
      entryPoints: [join(source, `functions/aws/${name}.ts`)],
      outfile: join(out, name, 'index.mjs'),
      format: 'esm',
      target: 'node24',
      // Names of functions and classes are minified away, 50 kB a bundle: errors of ours and of the SDK set their own.
      banner: { js: REQUIRE_BANNER },
    });
  }
}

/** Split, so that the SDK of a cloud that is not asked for is not loaded. */
function bundleCli(source: string, out: string): void {
  const entry = join(source, 'cli/main.ts');
  const hashbang = readFileSync(entry, 'utf8').startsWith('#!') ? '' : '#!/usr/bin/env node\n';
  buildSync({
    ...COMMON,
    entryPoints: [{ in: entry, out: 'gleaner' }],
    outdir: out,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunks/[name]-[hash]',
    splitting: true,
    format: 'esm',
    target: 'node20',
    keepNames: true,
    banner: { js: hashbang + REQUIRE_BANNER },
  });
  chmodSync(join(out, 'gleaner.mjs'), 0o755);
}

/**
 * An ES module in chunks: what registers the functions is small, and the SDKs are read at the first call only. The worker
 * supplies `@azure/functions-core` through a `require` hook, which the banner's `require` reaches. `NODE_OPTIONS` has no
 * effect after specialisation, so a boot file switches source maps on before it loads the bundle.
 */
function bundleAzure(source: string, out: string): void {
  buildSync({
    ...COMMON,
    entryPoints: [{ in: join(source, 'functions/azure/main.ts'), out: 'main' }],
    outdir: out,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunks/[name]-[hash]',
    splitting: true,
    format: 'esm',
    target: 'node22',
    external: ['@azure/functions-core'],
    banner: { js: REQUIRE_BANNER },
  });
  writeFileSync(join(out, 'boot.mjs'), "process.setSourceMapsEnabled(true);\nawait import('./main.mjs');\n");
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  writeJson(join(out, 'package.json'), { name: 'gleaner', version, private: true, main: 'boot.mjs' });
  const own = join(source, 'functions/azure/host.json');
  writeJson(join(out, 'host.json'), existsSync(own) ? JSON.parse(readFileSync(own, 'utf8')) : HOST);
}

/** Queue and Event Grid triggers come from the extension bundle. */
const HOST = {
  version: '2.0',
  extensionBundle: { id: 'Microsoft.Azure.Functions.ExtensionBundle', version: '[4.0.0, 5.0.0)' },
};

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

function main(): void {
  const started = performance.now();
  try {
    const names = build(process.argv.slice(2));
    const files = names.flatMap((name) => (name === 'aws' ? AWS_FUNCTIONS.map((one) => `aws/${one}/index.mjs`) : []));
    if (names.includes('azure')) files.push('azure/main.mjs');
    if (names.includes('cli')) files.push('cli/gleaner.mjs');
    for (const file of files) {
      const path = join(ROOT, 'dist', file);
      console.log(`${relative(ROOT, path)}  ${Math.round(statSync(path).size / 1000)} kB`);
    }
    console.log(`built ${names.join(', ')} in ${Math.round(performance.now() - started)} ms`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

if (import.meta.main) main();
