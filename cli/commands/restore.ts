import { restore } from '../../shared/core/explain.ts';
import { Ledger } from '../../shared/core/ledger.ts';
import { type Flags, policyOf, scopeOfId } from '../flags.ts';
import { engineOf } from '../wire.ts';

/** `gleaner restore <id>`. @returns the exit code */
export async function restoreCommand(id: string, flags: Flags): Promise<number> {
  const engine = await engineOf(flags, policyOf(flags), 'records');
  try {
    const { signal } = new AbortController();
    const { scopes } = await engine.cloud.open(scopeOfId(id, flags), signal);
    const { id: restored, from } = await restore(new Ledger(engine.store), scopes, id, signal);
    const answer = { id, restored, from };
    process.stdout.write(
      flags.json
        ? `${JSON.stringify(answer)}\n`
        : `${id} is back as ${restored}, from the ${from}, with the tag gleaner-keep so that no sweep deletes it again\n`,
    );
    return 0;
  } finally {
    await engine.store.close();
  }
}
