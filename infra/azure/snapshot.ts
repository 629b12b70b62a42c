import { bicep, compilerMissing } from './compiler.ts';

/** Writes anew what the example deploys, all expressions evaluated: `npm run snapshot:azure`. */
const missing = compilerMissing();
if (missing) throw new Error(missing);
const { status, stderr } = bicep(
  'snapshot',
  'main.bicepparam',
  '--mode',
  'overwrite',
  '--subscription-id',
  '11111111-2222-3333-4444-555555555555',
  '--location',
  'westeurope',
);
if (status !== 0) throw new Error(stderr);
