import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const FOLDER = import.meta.dirname;
/** The subscription and place of the snapshots; the subscription is nobody's. */
export const SNAPSHOT = ['--subscription-id', '11111111-2222-3333-4444-555555555555', '--location', 'westeurope'];
/** Beside the repository, and where `az bicep install` puts it. */
const PLACES = [join(FOLDER, '../../../shared/tools/bicep/bicep'), join(homedir(), '.azure/bin/bicep')];

export interface Compiled {
  readonly status: number;
  readonly stdout: string;
  /** Every diagnostic is here; warnings leave the exit code at 0, so what is printed here is what counts. */
  readonly stderr: string;
}

let found: { readonly command: string | undefined } | undefined;

/** The Bicep compiler: BICEP and no other where it is set, else `bicep` on the path, beside the repository, or the Azure CLI's. */
function findCompiler(): string | undefined {
  const { BICEP } = process.env;
  const candidates = BICEP ? [BICEP] : ['bicep', ...PLACES];
  found ??= { command: candidates.find((command) => spawnSync(command, ['--version']).status === 0) };
  return found.command;
}

/** Why nothing can be checked, or undefined. @throws Error saying so, where BICEP_REQUIRED=1 */
export function compilerMissing(): string | undefined {
  if (findCompiler() !== undefined) return undefined;
  const { BICEP, BICEP_REQUIRED } = process.env;
  const reason = BICEP
    ? `BICEP=${BICEP} does not run`
    : 'no Bicep compiler: set BICEP, or install one (az bicep install)';
  if (BICEP_REQUIRED === '1') throw new Error(reason);
  return reason;
}

/** Runs the compiler in the folder of the templates. @throws Error where there is none */
export function bicep(...args: readonly string[]): Compiled {
  const command = findCompiler();
  if (command === undefined) throw new Error(compilerMissing());
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: FOLDER, encoding: 'utf8', maxBuffer: 1e8 });
  return { status: status ?? -1, stdout, stderr };
}
