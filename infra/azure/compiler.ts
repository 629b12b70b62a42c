import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export const FOLDER = import.meta.dirname;
const BESIDE = join(FOLDER, '../../../shared/tools/bicep/bicep');

export interface Compiled {
  readonly status: number;
  readonly stdout: string;
  /** Every diagnostic is here; warnings leave the exit code at 0, so what is printed here is what counts. */
  readonly stderr: string;
}

/** The Bicep compiler: BICEP, `bicep` on the path, the Azure CLI's, or one beside the repository. Undefined = none. */
export function findCompiler(): readonly string[] | undefined {
  const { BICEP } = process.env;
  const candidates = [
    ...(BICEP ? [[BICEP]] : []),
    ['bicep'],
    ...(existsSync(BESIDE) ? [[BESIDE]] : []),
    ['az', 'bicep'],
  ];
  return candidates.find(([command = '', ...args]) => spawnSync(command, [...args, '--version']).status === 0);
}

/** Why nothing can be checked; BICEP_REQUIRED=1 makes it an error. */
export function compilerMissing(): string | undefined {
  if (findCompiler()) return undefined;
  const reason = 'no Bicep compiler: set BICEP, or install the Azure CLI (az bicep install)';
  if (process.env.BICEP_REQUIRED === '1') throw new Error(reason);
  return reason;
}

export function bicep(...args: readonly string[]): Compiled {
  const [command = '', ...first] = findCompiler() ?? [];
  const { status, stdout, stderr } = spawnSync(command, [...first, ...args], {
    cwd: FOLDER,
    encoding: 'utf8',
    maxBuffer: 1e8,
  });
  return { status: status ?? -1, stdout, stderr };
}
