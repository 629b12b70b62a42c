import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Stage } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { InputError } from '../../shared/core/errors.ts';
import { AWS_FUNCTIONS, type AwsFunction, build } from '../build.ts';
import type { Settings } from './settings.ts';

/** Name of the policy's file beside the bundle. */
export const POLICY_FILE = 'policy.json';

let built: string | undefined;

/** Folder of the bundles: those that were given, or built now, once a process. */
function bundlesFolder({ bundles }: Settings): string {
  if (bundles !== undefined) return checked(bundles);
  if (built === undefined) {
    build(['aws']);
    built = join(import.meta.dirname, '../../dist/aws');
  }
  return built;
}

function checked(folder: string): string {
  const missing = AWS_FUNCTIONS.find((name) => !existsSync(join(folder, name, 'index.mjs')));
  if (missing !== undefined) throw new InputError('props.bundles', `${folder} has no ${missing}/index.mjs`);
  return folder;
}

/**
 * One function's code: its bundle and the deployment's policy, put together in the cloud assembly's folder. CDK names it
 * by its content, so a function is deployed anew exactly when its code or the policy changed.
 */
export function functionCode(scope: Construct, name: AwsFunction, settings: Settings): Code {
  const bundle = join(bundlesFolder(settings), name);
  const folder = join(Stage.of(scope)?.outdir ?? 'cdk.out', 'gleaner', scope.node.addr, name);
  rmSync(folder, { recursive: true, force: true });
  cpSync(bundle, folder, { recursive: true });
  writeFileSync(join(folder, POLICY_FILE), `${JSON.stringify(settings.policyInput, null, 2)}\n`);
  return Code.fromAsset(folder);
}
