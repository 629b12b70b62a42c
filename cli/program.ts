import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { CloudError, InputError } from '../shared/core/errors.ts';
import { explainCommand } from './commands/explain.ts';
import { historyCommand } from './commands/history.ts';
import { restoreCommand } from './commands/restore.ts';
import { sweepCommand } from './commands/sweep.ts';
import { CLOUDS, type Flags, flagError } from './flags.ts';

/** Bad input: a flag, a policy, an id. Nothing was done. */
const BAD_INPUT = 2;

/** Runs one command line; returns the exit code. Writes its result to standard output, everything else to standard error. */
export async function run(args: readonly string[]): Promise<number> {
  let code = 0;
  const program = build((result) => {
    code = result;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : BAD_INPUT;
    if (error instanceof InputError) {
      process.stderr.write(`error: ${flagError(error)}\n`);
      return BAD_INPUT;
    }
    if (error instanceof CloudError) {
      process.stderr.write(`error: ${error.operation}: ${error.nativeCode}: ${error.message}\n`);
      return 1;
    }
    throw error;
  }
}

function build(done: (code: number) => void): Command {
  const { version } = JSON.parse(readFileSync(packageFile(), 'utf8')) as { version: string };
  const program = new Command('gleaner')
    .description('Deletes the network interfaces and disks that virtual machines leave behind, and nothing else.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(--help lists the flags)')
    .configureOutput({ writeErr: (text) => process.stderr.write(text) });
  const sub = (name: string, description: string) => program.command(name).description(description).exitOverride();

  sweepFlags(sub('plan', 'say what a sweep would do; writes nothing anywhere')).action(async (flags: Flags) =>
    done(await sweepCommand('plan', flags)),
  );
  sweepFlags(sub('sweep', 'look once; with --mode enforce delete what is due'))
    .option('--wait <duration>', 'look again for so long at what the cloud says to try later', text('wait'))
    .option('--release-breaker', 'the owners that tripped the breaker are truly gone: a person has looked')
    .option('--yes', 'do not ask before deleting')
    .action(async (flags: Flags) => done(await sweepCommand('sweep', flags)));
  timeFlags(scopeFlags(sub('explain', 'one resource as a sweep would see it now, and when it would go')))
    .argument('<id>', 'native id of a disk or network interface', text('id'))
    .action(async (id: string, flags: Flags) => done(await explainCommand(id, flags)));
  ledgerFlags(sub('history', 'deletions, newest first'))
    .option('--limit <count>', 'at most so many', count('limit'), 100)
    .action(async (flags: Flags) => done(await historyCommand(flags)));
  scopeFlags(sub('restore', 'make a deleted disk again, from its snapshot or from the recycle bin'))
    .argument('<id>', 'native id of the deleted disk', text('id'))
    .action(async (id: string, flags: Flags) => done(await restoreCommand(id, flags)));
  sub('demo', 'a cluster dies on simulated clouds; nothing real is touched').action(async () => {
    const { demo } = await import('./demo/demo.ts');
    done(await demo());
  });
  return program;
}

function ledgerFlags(command: Command): Command {
  return command
    .option('--ledger <where>', 'sqlite:FILE, memory, dynamodb:TABLE or tables:ACCOUNT-URL', text('ledger'))
    .option('--region <names>', 'AWS: regions, comma separated, or all', text('region'))
    .option('--json', 'one JSON document on standard output');
}

function scopeFlags(command: Command): Command {
  return ledgerFlags(command)
    .addOption(new Option('--cloud <name>', 'the cloud').choices(CLOUDS).makeOptionMandatory())
    .option('--subscription <ids>', 'Azure: subscriptions, comma separated', text('subscription'))
    .option('--resource-group <name>', 'only members of this resource group', text('resource-group'))
    .option('--policy <file>', 'policy, YAML or JSON', text('policy'))
    .option('--verbose', 'log to standard error');
}

/** What a verdict depends on. */
function timeFlags(command: Command): Command {
  return command
    .option('--grace <duration>', 'time between first sighting and deletion (default: 30m)', text('grace'))
    .option('--min-age <duration>', 'nothing younger is deleted (default: 10m)', text('min-age'))
    .option('--settle <duration>', 'time between two looks where one is no proof (default: 5m)', text('settle'));
}

function sweepFlags(command: Command): Command {
  return timeFlags(scopeFlags(command))
    .option('--cluster <name>', 'only resources of this cluster', text('cluster'))
    .option('--vm <id>', 'only what this VM left: its id, or its name', text('vm'))
    .addOption(
      new Option('--mode <mode>', 'observe decides and records, enforce deletes (default: observe)').choices([
        'observe',
        'enforce',
      ]),
    )
    .option('--budget <count>', 'deletions a run (default: 200)', count('budget'))
    .option('--all', 'list what is kept as well');
}

/** Nothing is never a value: an empty variable in a script must not widen a scope or mean zero. */
function text(flag: string): (value: string) => string {
  return (value) => {
    if (value.trim() === '') throw new InvalidArgumentError(`${flag} must not be empty.`);
    return value.trim();
  };
}

function count(flag: string): (value: string) => number {
  return (value) => {
    if (!/^\d{1,9}$/.test(value.trim())) throw new InvalidArgumentError(`${flag} must be a whole number.`);
    return Number(value);
  };
}

/** In the repository one folder up, in the bundle two. */
function packageFile(): URL {
  const own = new URL('../package.json', import.meta.url);
  return /\/dist\/cli\//.test(import.meta.url) ? new URL('../../package.json', import.meta.url) : own;
}
