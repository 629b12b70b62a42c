import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { InputError } from '../../shared/core/errors.ts';
import { AWS_FUNCTIONS, type AwsFunction, build } from '../build.ts';
import type { Settings } from './settings.ts';

/** Name of the policy's file beside the bundle. */
export const POLICY_FILE = 'policy.json';

let built: string | undefined;

/** Folder of the bundles: those that were given, or built now, once a process. */
export function bundlesFolder({ bundles }: Settings): string {
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

/** One function's code: its bundle and the deployment's policy, put together in the cloud assembly. */
export function functionCode(name: AwsFunction, settings: Settings): Code {
  return Code.fromAsset(join(bundlesFolder(settings), name), {
    // By content, so that a function is deployed anew exactly when its code or the policy changed.
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      // Never used: the local way below always succeeds or throws.
      image: DockerImage.fromRegistry('scratch'),
      local: {
        tryBundle(outputDir) {
          cpSync(join(bundlesFolder(settings), name), outputDir, { recursive: true });
          writeFileSync(join(outputDir, POLICY_FILE), `${JSON.stringify(settings.policyInput, null, 2)}\n`);
          return true;
        },
      },
    },
  });
}
