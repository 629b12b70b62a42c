import { parseArgs } from 'node:util';
import { sweep } from '../shared/core/engine.ts';
import { parsePolicy } from '../shared/core/policy.ts';
import { SystemClock } from '../shared/local/clock.ts';
import { MemoryLedger } from '../shared/local/ledger-memory.ts';

/** One sweep, measured from within: wall seconds, peak resident memory, counts and calls, as JSON. */
const { values } = parseArgs({
  options: { kind: { type: 'string', default: 'disk,nic' }, cloud: { type: 'string', default: 'aws' } },
});
const clock = new SystemClock();
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const policy = parsePolicy({
  grace: '0',
  minAge: '0',
  settle: '0',
  budget: { perRun: 100_000, perHour: 100_000 },
  kinds: values.kind.split(',') as ('disk' | 'nic')[],
});
const engine = {
  cloud: await cloudOf(values.cloud),
  store: new MemoryLedger(),
  policy,
  clock,
  log: silent,
  notifier: { notify: async () => {} },
};

/** Only the one that is asked for is loaded: what it weighs counts. */
async function cloudOf(name: string) {
  if (name !== 'azure') return (await import('../shared/aws/registry.ts')).aws({ region: 'us-east-1' });
  const { azure } = await import('../shared/azure/registry.ts');
  const { AZURE_RESOURCE_MANAGER_ENDPOINT: endpoint = '', SUBSCRIPTION = '' } = process.env;
  return azure({ clock, endpoint, subscriptions: [SUBSCRIPTION] });
}

const started = performance.now();
const { report } = await sweep(
  engine,
  'sweep',
  {},
  { mode: 'enforce', signal: new AbortController().signal, maxItems: 0 },
);
const wallS = (performance.now() - started) / 1000;
const peakMiB = process.resourceUsage().maxRSS / 1024;
process.stdout.write(JSON.stringify({ wallS, peakMiB, result: { counts: report.counts, calls: report.calls } }));
