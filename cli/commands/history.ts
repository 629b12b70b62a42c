import { history } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { SystemClock } from '../../shared/local/clock.ts';
import type { Flags } from '../flags.ts';
import { shortId, table } from '../output/table.ts';
import { ledgerOf } from '../wire.ts';

/** `gleaner history`. @returns the exit code */
export async function historyCommand(flags: Flags): Promise<number> {
  const store = await ledgerOf(flags, new SystemClock(), 'records');
  try {
    const items = await history(new Ledger(store), flags.limit ?? 100);
    if (flags.json) {
      process.stdout.write(`${JSON.stringify({ items })}\n`);
      return 0;
    }
    if (items.length === 0) {
      process.stdout.write('no deletions recorded\n');
      return 0;
    }
    const rows = items.map(({ at = '', kind, id, name, runId, snapshotId }) => [
      at,
      kind,
      shortId(id),
      name,
      runId.slice(0, 8),
      snapshotId ?? '',
    ]);
    process.stdout.write(`${table(['at', 'kind', 'id', 'name', 'run', 'snapshot'], rows)}\n`);
    return 0;
  } finally {
    await store.close();
  }
}
