import { bicep } from '../../infra/azure/compiler.ts';

/** A resource of the compiled template, modules included; expressions are not evaluated. */
export interface Declared {
  readonly type: string;
  readonly name: string;
  readonly condition?: string;
  readonly properties?: Record<string, unknown>;
  readonly [key: string]: unknown;
}

interface Template {
  readonly variables?: Record<string, unknown>;
  readonly resources: Record<string, Declared> | Declared[];
}

let compiled: Template | undefined;

export function template(): Template {
  compiled ??= JSON.parse(bicep('build', 'main.bicep', '--stdout').stdout) as Template;
  return compiled;
}

/** Every resource at any depth. */
export function declared(from: Template = template()): Declared[] {
  return Object.values(from.resources).flatMap((resource) => {
    const inner = (resource.properties?.template ?? undefined) as Template | undefined;
    return inner ? [resource, ...declared(inner)] : [resource];
  });
}

/** What the identity may do to the customer's resources, in each mode. */
export function roleActions(mode: 'observe' | 'enforce'): string[] {
  const { reads, deletes } = template().variables as { reads: string[]; deletes: string[] };
  const follow = declared().find(({ name }) => name.includes("'follow')"))?.properties as {
    permissions: { actions: string[] }[];
  };
  return [...reads, ...(mode === 'enforce' ? deletes : []), ...follow.permissions.flatMap(({ actions }) => actions)];
}
