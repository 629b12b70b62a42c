import type { RunMetrics } from '../core/metrics.ts';
import type { Log, Notice, Notifier } from '../core/ports.ts';

/** Tells by lines of the log, which alerts query: `gleaner.<type>`, with the notice's fields in `detail`. docs/events.md describes them. */
export class LogNotifier implements Notifier {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  async notify({ type, detail }: Notice): Promise<void> {
    const level = type === 'breaker-tripped' || type === 'item-given-up' ? 'error' : 'info';
    this.#log[level]({ detail }, `gleaner.${type}`);
  }
}

/** The figures of a run as one line of the log. */
export function logMetrics(log: Log): (metrics: RunMetrics, verb: string) => void {
  return (metrics, verb) => log.info({ verb, metrics }, 'gleaner.metrics');
}
