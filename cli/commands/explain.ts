import { explain } from '../../shared/core/explain.ts';
import type { ReportItem } from '../../shared/core/report.ts';
import { type Flags, policyOf, scopeOfId } from '../flags.ts';
import { OUTCOME_STYLE, paint } from '../output/style.ts';
import { engineOf } from '../wire.ts';

/** `gleaner explain <id>`. @returns the exit code */
export async function explainCommand(id: string, flags: Flags): Promise<number> {
  const engine = await engineOf(flags, policyOf(flags), 'look');
  try {
    const { signal } = new AbortController();
    const item = await explain(engine, id, scopeOfId(id, flags), { mode: 'observe', signal });
    process.stdout.write(flags.json ? `${JSON.stringify(item)}\n` : textOf(item));
    return 0;
  } finally {
    await engine.store.close();
  }
}

function textOf(item: ReportItem): string {
  const head = `${paint('bold', item.id)}  ${item.kind} ${item.name === item.id ? '' : item.name}`;
  const verdict = `${paint(OUTCOME_STYLE[item.outcome] ?? 'dim', item.verdict)}: ${item.reason}`;
  const when =
    item.dueAt === undefined ? [] : [item.verdict === 'reap' ? `due since ${item.dueAt}` : `would go at ${item.dueAt}`];
  return `${[head, verdict, ...item.evidence.map((line) => `  ${line}`), ...when].join('\n')}\n`;
}
