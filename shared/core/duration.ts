const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Ten years: a longer one is a slip, and added to a date it may be no date any more. */
const MAX_MS = 3650 * 86_400_000;

/**
 * `90s`, `30m`, `1h30m`, `7d`, `0`, at most 3650 days. Milliseconds; undefined when it is none, the empty string included:
 * nothing is never zero.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (!/^(\d+(ms|s|m|h|d))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g))
    total += Number(amount) * (UNITS[unit ?? ''] ?? Number.NaN);
  return total <= MAX_MS ? total : undefined;
}

/** Milliseconds as people write them: `1h30m`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  let rest = Math.round(ms / 1000) * 1000;
  let text = '';
  for (const unit of ['d', 'h', 'm', 's']) {
    const size = UNITS[unit] as number;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}
