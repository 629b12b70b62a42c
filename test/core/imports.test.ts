import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const FOLDERS = ['shared', 'functions', 'cli', 'simulator', 'infra'];
const CLOUDS = ['aws', 'azure', 'gcp'];
/** Libraries that core may use: none of them talks to anybody. */
const CORE_PACKAGES = ['zod', 'yaml', 'p-map', 'lru-cache'];

interface Source {
  readonly path: string;
  readonly text: string;
  /** Repository paths for relative imports, package names for the others. */
  readonly imports: readonly string[];
}

function sources(): Source[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
    .filter((path) => path.endsWith('.ts'))
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
      const imports = specifiers.map((specifier) =>
        specifier.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(path), specifier)) : specifier,
      );
      return { path, text, imports };
    });
}

const all = sources();
const under = (folder: string) => all.filter(({ path }) => path.startsWith(`${folder}/`));

function offenders(files: readonly Source[], forbidden: (imported: string, path: string) => boolean): string[] {
  return files.flatMap(({ path, imports }) =>
    imports.filter((one) => forbidden(one, path)).map((one) => `${path} imports ${one}`),
  );
}

describe('import rules', () => {
  it('finds the sources', () => {
    expect(under('shared/core').length).toBeGreaterThan(10);
    expect(under('shared/core').flatMap(({ imports }) => imports).length).toBeGreaterThan(10);
  });

  it('core imports itself, four quiet libraries and Node, nothing else', () => {
    const allowed = (one: string) =>
      one.startsWith('shared/core/') || one.startsWith('node:') || CORE_PACKAGES.includes(one);
    expect(offenders(under('shared/core'), (one) => !allowed(one))).toEqual([]);
  });

  it('core names no cloud in its code', () => {
    const naming = under('shared/core').filter(({ text }) => {
      const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
      return /(['"`])(aws|azure|gcp)[:'"`]/.test(code);
    });
    expect(naming.map(({ path }) => path)).toEqual([]);
  });

  it('clouds never import each other', () => {
    const cloudOf = (path: string) =>
      CLOUDS.find((cloud) => /^(shared|functions|simulator|infra)\//.test(path) && path.split('/')[1] === cloud);
    const crossing = (one: string, path: string) => {
      const [mine, theirs] = [cloudOf(path), cloudOf(one)];
      return mine !== undefined && theirs !== undefined && mine !== theirs;
    };
    expect(offenders(all, crossing)).toEqual([]);
  });

  it('adapters, functions and the CLI never import the simulator, except for the demo', () => {
    const files = [...under('shared'), ...under('functions'), ...under('cli')].filter(
      ({ path }) => !path.startsWith('cli/demo'),
    );
    expect(offenders(files, (one) => one.startsWith('simulator/'))).toEqual([]);
  });

  it('only entry points read the environment', () => {
    const readers = all.filter(({ path, text }) => /^(shared)\//.test(path) && /process\.env/.test(text));
    expect(readers.map(({ path }) => path)).toEqual([]);
  });

  it('one module alone calls delete on a resource type', () => {
    const callers = under('shared/core').filter(({ text }) => /\btype\.delete\(/.test(text));
    expect(callers.map(({ path }) => path)).toEqual(['shared/core/reap.ts']);
    const outside = [...under('functions'), ...under('cli')].filter(({ text }) =>
      /\.delete\((resource|item|orphan)/.test(text),
    );
    expect(outside).toEqual([]);
  });
});
