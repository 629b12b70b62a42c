import { restore } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { type Flags, policyOf, scopeOf } from '../flags.ts';
import { engineOf } from '../wire.ts';

/** `gleaner restore <id>`. @returns the exit code */
export async function restoreCommand(id: string, flags: Flags): Promise<number> {
  const engine = await engineOf(flags, policyOf(flags), false);
  try {
    const { signal } = new AbortController();
    const { scopes } = await engine.cloud.open(scopeOf(flags), signal);
    const { id: restored, from } = await restore(new Ledger(engine.store), scopes, id, signal);
    const answer = { id, restored, from };
    process.stdout.write(
      flags.json ? `${JSON.stringify(answer)}\n` : `${id} is back as ${restored}, from the ${from}\n`,
    );
    return 0;
  } finally {
    await engine.store.close();
  }
}
