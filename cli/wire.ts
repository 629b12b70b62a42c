import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../shared/core/engine.ts';
import { InputError } from '../shared/core/errors.ts';
import type { Policy } from '../shared/core/policy.ts';
import type { Clock, Cloud, LedgerStore, Log, Notifier } from '../shared/core/ports.ts';
import { SystemClock } from '../shared/local/clock.ts';
import { createLog } from '../shared/local/log.ts';
import type { Flags } from './flags.ts';

const DEFAULT_REGION = 'us-east-1';
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
/** Nobody is told by the CLI: its report is the telling. */
const quiet: Notifier = { notify: async () => {} };

/**
 * What a command wants of the ledger: to write to it; to read what earlier runs noted, if they did; or its records
 * themselves, which must be there where they are asked for by name. Only the first makes one.
 */
export type LedgerUse = 'write' | 'look' | 'records';

/** Puts the pieces together that the flags name. */
export async function engineOf(flags: Flags, policy: Policy, use: LedgerUse): Promise<Engine> {
  const clock = new SystemClock();
  // Everything that a person must know is in the report; the log is for those who ask for it.
  const log = flags.verbose ? createLog({ level: 'debug', stream: process.stderr }) : silent;
  const cloud = await cloudOf(flags, clock);
  const store = await ledgerOf(flags, clock, use);
  return { cloud, store, policy, clock, log, notifier: quiet };
}

/** The SDKs of the other clouds are not even loaded. */
async function cloudOf(flags: Flags, clock: Clock): Promise<Cloud> {
  if (flags.cloud === 'aws') {
    const { aws } = await import('../shared/aws/registry.ts');
    return aws({ region: await homeRegion(flags) });
  }
  const { azure } = await import('../shared/azure/registry.ts');
  const { AZURE_RESOURCE_MANAGER_ENDPOINT: endpoint, AZURE_AUTHORITY_HOST: authorityHost } = process.env;
  return azure({ clock, ...(endpoint && { endpoint }), ...(authorityHost && { authorityHost }) });
}

/** Where account-wide questions are asked, and where a DynamoDB ledger lies. */
export async function homeRegion({ region }: Flags): Promise<string> {
  const first = region?.split(',')[0];
  const named = first === undefined || first === 'all' ? undefined : first;
  const said = process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || named;
  if (said) return said;
  // What the SDK would take: the profile's.
  const { EC2Client } = await import('@aws-sdk/client-ec2');
  return new EC2Client({}).config.region().catch(() => DEFAULT_REGION);
}

const ledgerName = (flags: Flags) =>
  flags.ledger ?? (process.env.GLEANER_LEDGER || undefined) ?? `sqlite:${defaultFile()}`;

/** Whether nothing of this run will be known to the next. */
export const isForgetful = (flags: Flags) => ['memory', 'sqlite::memory:'].includes(ledgerName(flags));

/** @throws InputError naming --ledger */
export async function ledgerOf(flags: Flags, clock: Clock, use: LedgerUse): Promise<LedgerStore> {
  const where = ledgerName(flags);
  const [kind, ...rest] = where.split(':');
  const place = rest.join(':');
  if (where === 'memory') return memory(clock);
  if (place === '')
    throw new InputError(
      '--ledger',
      `${JSON.stringify(where)} is none of sqlite:FILE, memory, dynamodb:TABLE, tables:URL`,
    );
  switch (kind) {
    case 'sqlite': {
      if (use !== 'write' && !existsSync(place)) return absent(flags, place, clock, use);
      const { SqliteLedger } = await import('../shared/local/ledger-sqlite.ts');
      return SqliteLedger.open(place, clock, { readOnly: use !== 'write' });
    }
    case 'dynamodb': {
      const { DynamoLedger } = await import('../shared/aws/ledger-dynamodb.ts');
      return new DynamoLedger({ region: await homeRegion(flags), table: place, clock });
    }
    case 'tables':
      return tables(place, clock);
    default:
      throw new InputError(
        '--ledger',
        `${JSON.stringify(where)} is none of sqlite:FILE, memory, dynamodb:TABLE, tables:URL`,
      );
  }
}

/** The table `gleaner` of a storage account: `https://<account>.table.core.windows.net`, with the default credential. */
async function tables(url: string, clock: Clock): Promise<LedgerStore> {
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:')
    throw new InputError('--ledger', `${url} is no https address of a storage account`);
  const { TablesLedger } = await import('../shared/azure/ledger-tables.ts');
  const { DefaultAzureCredential } = await import('@azure/identity');
  return new TablesLedger({ access: { url, credential: new DefaultAzureCredential() }, table: 'gleaner', clock });
}

/** A first look finds no ledger; a name that was given may be misspelt. */
function absent(flags: Flags, file: string, clock: Clock, use: LedgerUse): Promise<LedgerStore> {
  const isNamed = flags.ledger !== undefined || Boolean(process.env.GLEANER_LEDGER);
  if (isNamed && use === 'records') throw new InputError('--ledger', `${file} does not exist`);
  if (isNamed) process.stderr.write(`note: ${file} does not exist (yet): no earlier sighting is known\n`);
  return memory(clock);
}

async function memory(clock: Clock): Promise<LedgerStore> {
  const { MemoryLedger } = await import('../shared/local/ledger-memory.ts');
  return new MemoryLedger(clock);
}

function defaultFile(): string {
  const state = process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state');
  return join(state, 'gleaner', 'ledger.db');
}
