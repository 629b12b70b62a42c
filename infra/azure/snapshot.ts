import { bicep, compilerMissing, SNAPSHOT } from './compiler.ts';

/** Writes anew what the example deploys, all expressions evaluated: `npm run snapshot:azure`. */
const missing = compilerMissing();
if (missing) throw new Error(missing);
const { status, stderr } = bicep('snapshot', 'main.bicepparam', '--mode', 'overwrite', ...SNAPSHOT);
if (status !== 0) throw new Error(stderr);
