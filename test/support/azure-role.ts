import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { bicep, FOLDER, SNAPSHOT } from '../../infra/azure/compiler.ts';

/** A resource as it would be deployed: all expressions evaluated but those that Azure alone can answer. */
export interface Deployed {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly properties?: Record<string, unknown>;
}

const kept = new Map<string, readonly Deployed[]>();

/** What the template deploys with these parameters (`location` is given), by the compiler itself. @throws Error with its diagnostics */
export function deployed(parameters: Readonly<Record<string, unknown>> = {}): readonly Deployed[] {
  const key = JSON.stringify(parameters);
  const known = kept.get(key);
  if (known) return known;
  const folder = mkdtempSync(join(tmpdir(), 'gleaner-bicep-'));
  try {
    const lines = Object.entries({ location: 'westeurope', ...parameters }).map(
      ([name, value]) => `param ${name} = json('${JSON.stringify(value).replaceAll("'", "\\'")}')`,
    );
    const file = join(folder, 'main.bicepparam');
    writeFileSync(file, [`using '${relative(folder, join(FOLDER, 'main.bicep'))}'`, ...lines, ''].join('\n'));
    const { status, stderr } = bicep('snapshot', file, '--mode', 'overwrite', ...SNAPSHOT);
    if (status !== 0) throw new Error(stderr);
    const text = readFileSync(join(folder, 'main.snapshot.json'), 'utf8');
    const { predictedResources } = JSON.parse(text) as { predictedResources: Deployed[] };
    kept.set(key, predictedResources);
    return predictedResources;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The actions of every role that the deployment makes, sorted: what its identity may do to the customer's resources. */
export function roleActions(mode: 'observe' | 'enforce'): string[] {
  return deployed({ mode })
    .filter(({ type }) => type === 'Microsoft.Authorization/roleDefinitions')
    .flatMap(({ properties }) => (properties as { permissions: { actions: string[] }[] }).permissions)
    .flatMap(({ actions }) => actions)
    .toSorted();
}
