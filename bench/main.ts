import { AWS_PARTS } from './aws.ts';
import { AZURE_PARTS } from './azure.ts';

/**
 * `npm run bench [-- <cloud> [<part> …]]`, everything without a name. Counts are exact and are checked; times are reported
 * beside the least time that the same calls could take, since only their ratio means anything on another machine.
 */
const CLOUDS: Readonly<Record<string, Readonly<Record<string, () => void | Promise<void>>>>> = {
  aws: AWS_PARTS,
  azure: AZURE_PARTS,
};

const [cloud, ...asked] = process.argv.slice(2);
refuse(cloud, Object.keys(CLOUDS));
for (const name of asked) refuse(name, Object.keys(CLOUDS[cloud ?? ''] ?? {}));

for (const [name, parts] of Object.entries(CLOUDS)) {
  if (cloud !== undefined && cloud !== name) continue;
  console.log(`\n${name}`);
  for (const [part, run] of Object.entries(parts)) if (asked.length === 0 || asked.includes(part)) await run();
}

function refuse(name: string | undefined, known: readonly string[]): void {
  if (name === undefined || known.includes(name)) return;
  console.error(`${name}: none of ${known.join(', ')}`);
  process.exit(2);
}
