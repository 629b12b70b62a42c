import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GENERATED } from '../../docs/generate.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const pages = [...globSync('*.md', { cwd: ROOT }), ...globSync('docs/*.md', { cwd: ROOT })];

describe('docs', () => {
  it.each(Object.keys(GENERATED))('%s is what the code says (npm run docs)', (file) => {
    expect(readFileSync(join(ROOT, 'docs', file), 'utf8')).toBe(GENERATED[file]?.());
  });

  it('names every reason that a verdict can have', () => {
    const model = readFileSync(join(ROOT, 'shared/core/model.ts'), 'utf8');
    const union = /export type Reason =([^;]+);/.exec(model)?.[1] ?? '';
    const reasons = [...union.matchAll(/'([a-z-]+)'/g)].map((match) => match[1]);
    expect(reasons.length).toBeGreaterThan(15);
    const page = readFileSync(join(ROOT, 'docs/reasons.md'), 'utf8');
    expect(reasons.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
  });

  it('gives every dependency its reason', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
    const named = (name: string) =>
      page.includes(`\`${name}\``) || page.includes(`\`${name.replace(/^@[^/]+\/[a-z]+/, '')}\``);
    const all = Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !name.startsWith('@types/'));
    expect(all.filter((name) => !named(name))).toEqual([]);
  });

  it.each(pages)('%s links only to what is there', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const links = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)].map((match) => match[1] ?? '');
    expect(links.filter((link) => !existsSync(resolve(ROOT, dirname(page), link)))).toEqual([]);
  });
});
