import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { AWS_FUNCTIONS, build } from '../../infra/build.ts';

const ROOT = join(import.meta.dirname, '../..');
const root = mkdtempSync(join(tmpdir(), 'gleaner-build-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A source tree of these files, with the packages of the repository. */
function tree(files: Record<string, string>): { source: string; out: string } {
  const source = mkdtempSync(join(root, 'source-'));
  symlinkSync(join(ROOT, 'node_modules'), join(source, 'node_modules'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(source, name)), { recursive: true });
    writeFileSync(join(source, name), text);
  }
  return { source, out: join(source, 'dist') };
}

const HANDLER = `
import { EC2Client } from '@aws-sdk/client-ec2';
import pino from 'pino';
export class Refused extends Error { override readonly name = 'Refused'; }
export async function handler() {
  const ec2 = new EC2Client({ region: 'eu-west-1' });
  if (typeof pino !== 'function') throw new Error('pino');
  throw new Refused(await ec2.config.region());
}
`;

const awsTree = () => tree(Object.fromEntries(AWS_FUNCTIONS.map((name) => [`functions/aws/${name}.ts`, HANDLER])));

const run = (script: string, ...flags: string[]) =>
  execFileSync(process.execPath, [...flags, '--input-type=module', '--eval', script], { encoding: 'utf8', cwd: root });

describe('build', () => {
  it('aws: a folder for each function that loads by itself, with an SDK and a CommonJS package in it', () => {
    const { source, out } = awsTree();
    expect(build(['aws'], { source, out })).toEqual(['aws']);
    // Without the packages beside it: nothing may be left to resolve.
    rmSync(join(source, 'node_modules'));
    for (const name of AWS_FUNCTIONS) {
      const file = join(out, 'aws', name, 'index.mjs');
      expect(readdirSync(dirname(file)).sort()).toEqual(['index.mjs', 'index.mjs.map']);
      const script = `
        const { handler } = await import(${JSON.stringify(file)});
        console.log(handler.length);
        await handler().catch((error) => console.log(error.name, error.message, error.stack));`;
      const output = run(script, '--enable-source-maps');
      expect(output).toMatch(/^0\nRefused eu-west-1 /);
      expect(output).toMatch(new RegExp(`functions/aws/${name}\\.ts:8:`));
    }
  });

  it('cli: an executable that loads what it needs when it needs it', () => {
    const { source, out } = tree({
      'cli/main.ts':
        "console.log('args', process.argv.slice(2).join());\nif (process.argv[2] === 'more') await import('./more.ts');",
      'cli/more.ts': "import pino from 'pino';\nconsole.log('more', typeof pino);",
    });
    build(['cli'], { source, out });
    const file = join(out, 'cli/gleaner.mjs');
    expect(readFileSync(file, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n(?!#!)/);
    expect(readFileSync(file, 'utf8').length).toBeLessThan(2000);
    expect(execFileSync(file, ['a', 'b'], { encoding: 'utf8' })).toBe('args a,b\n');
    expect(execFileSync(file, ['more'], { encoding: 'utf8' })).toBe('args more\nmore function\n');
  });

  it('cli: keeps the first line that its entry has', () => {
    const { source, out } = tree({ 'cli/main.ts': "#!/usr/bin/env node\nconsole.log('here');" });
    build(['cli'], { source, out });
    expect(execFileSync(join(out, 'cli/gleaner.mjs'), { encoding: 'utf8' })).toBe('here\n');
  });

  it('azure: a function app whose main is a string, with the worker’s module left to the worker', () => {
    const { source, out } = tree({
      'functions/azure/main.ts':
        "import { app } from '@azure/functions';\napp.timer('sweep', { schedule: '0 0 * * * *', handler: () => console.log(import.meta.url) });",
    });
    build(['azure'], { source, out });
    const folder = join(out, 'azure');
    const { main } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    expect(existsSync(join(folder, main))).toBe(true);
    expect(JSON.parse(readFileSync(join(folder, 'host.json'), 'utf8'))).toMatchObject({
      version: '2.0',
      extensionBundle: { id: 'Microsoft.Azure.Functions.ExtensionBundle' },
    });
    // A module in place of the worker's, which records what is registered.
    const script = `
      import Module from 'node:module';
      const load = Module._load;
      const core = { version: '4', registerFunction: (meta, handler) => console.log(meta.name), setProgrammingModel: () => {}, registerHook: () => ({ dispose() {} }) };
      Module._load = (id, ...rest) => (id === '@azure/functions-core' ? core : load(id, ...rest));
      await import(${JSON.stringify(join(folder, main))});`;
    expect(run(script)).toBe('sweep\n');
  });

  it('takes what has entry points when nothing is named', () => {
    const { source, out } = tree({ 'cli/main.ts': 'console.log(1);' });
    expect(build([], { source, out })).toEqual(['cli']);
    expect(readdirSync(out)).toEqual(['cli']);
  });

  it('fails before anything is written', () => {
    const half = tree({ 'functions/aws/reap.ts': HANDLER, 'cli/main.ts': 'console.log(1);' });
    expect(() => build([], half)).toThrow(
      'target aws lacks functions/aws/vm-event.ts, functions/aws/schedule.ts, functions/aws/invoke.ts',
    );
    expect(() => build(['cli', 'azure'], half)).toThrow('target azure lacks functions/azure/main.ts');
    expect(() => build(['gcp'], half)).toThrow('unknown target gcp');
    expect(() => build(['constructor'], half)).toThrow('unknown target constructor');
    expect(() => build([], tree({}))).toThrow('no target has an entry point');
    expect(existsSync(half.out)).toBe(false);
  });

  it('as a command: exit code 1 and the reason', () => {
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'infra/build.ts'), 'nowhere'], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, 'unknown target nowhere: one of aws, azure, cli\n']);
  });
});
