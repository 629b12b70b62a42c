import { compilerMissing } from '../../../infra/azure/compiler.ts';

/** Why the deployment cannot be tested here; said once a file. */
export const missing = compilerMissing();
if (missing !== undefined) console.warn(`skipped: ${missing}`);
