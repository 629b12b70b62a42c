import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { afterAll } from 'vitest';
import { Gleaner, type GleanerProps } from '../../../infra/aws/gleaner.ts';
import { AWS_FUNCTIONS } from '../../../infra/build.ts';

const root = mkdtempSync(join(tmpdir(), 'gleaner-infra-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A new folder that is removed after the tests of the file. */
export function newFolder(): string {
  return mkdtempSync(join(root, 'x'));
}

/** Bundles that do nothing: what is under test here is what surrounds them. */
export function emptyBundles(): string {
  const folder = newFolder();
  for (const name of AWS_FUNCTIONS) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'index.mjs'), `export const handler = async () => '${name}';\n`);
  }
  return folder;
}

const bundles = emptyBundles();

/** A stack with one deployment. */
export function deploy(props: GleanerProps = {}): { app: App; stack: Stack; gleaner: Gleaner } {
  const app = new App({ outdir: newFolder() });
  const stack = new Stack(app, 'Test');
  return { app, stack, gleaner: new Gleaner(stack, 'Gleaner', { bundles, ...props }) };
}

/** Its template. */
export function templateOf(props: GleanerProps = {}): Template {
  return Template.fromStack(deploy(props).stack);
}

/** What points to another resource of the template. */
export interface Reference {
  readonly 'Fn::GetAtt'?: readonly string[];
  readonly Ref?: string;
}

/** Logical id of the resource that a property points to. */
export function target(value: Reference): string {
  return value['Fn::GetAtt']?.[0] ?? value.Ref ?? '';
}

/** Properties of all resources of a type whose logical id has `idPart` in it. */
export function properties<T = object>(template: Template, type: string, idPart = ''): T[] {
  return Object.entries(template.findResources(type))
    .filter(([id]) => id.includes(idPart))
    .map(([, one]) => one.Properties as T);
}

/** Properties of the only one of its kind. */
export function only<T = object>(template: Template, type: string, idPart: string): T {
  const [one, ...others] = properties<T>(template, type, idPart);
  if (one === undefined || others.length > 0) throw new Error(`${others.length + 1} of ${type} ${idPart}`);
  return one;
}
