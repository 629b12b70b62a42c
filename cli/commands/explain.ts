import { explain } from '../../shared/core/explain.ts';
import type { ReportItem } from '../../shared/core/report.ts';
import { type Flags, policyOf, scopeOf } from '../flags.ts';
import { OUTCOME_STYLE, paint } from '../output/style.ts';
import { engineOf } from '../wire.ts';

/** `gleaner explain <id>`. @returns the exit code */
export async function explainCommand(id: string, flags: Flags): Promise<number> {
  const engine = await engineOf(flags, policyOf(flags), false);
  try {
    const { signal } = new AbortController();
    const item = await explain(engine, id, await requestOf(id, flags), { mode: 'observe', signal });
    process.stdout.write(flags.json ? `${JSON.stringify(item)}\n` : textOf(item));
    return 0;
  } finally {
    await engine.store.close();
  }
}

/** An Azure id names its subscription. */
async function requestOf(id: string, flags: Flags) {
  const request = scopeOf(flags);
  if (flags.cloud !== 'azure' || request.subscriptions) return request;
  const subscription = /^\/subscriptions\/([^/]+)\//i.exec(id)?.[1];
  return subscription === undefined ? request : { ...request, subscriptions: [subscription] };
}

function textOf(item: ReportItem): string {
  const head = `${paint('bold', item.id)}  ${item.kind} ${item.name === item.id ? '' : item.name}`;
  const verdict = `${paint(OUTCOME_STYLE[item.outcome] ?? 'dim', item.verdict)}: ${item.reason}`;
  const when =
    item.dueAt === undefined ? [] : [item.verdict === 'reap' ? `due since ${item.dueAt}` : `would go at ${item.dueAt}`];
  return `${[head, verdict, ...item.evidence.map((line) => `  ${line}`), ...when].join('\n')}\n`;
}
