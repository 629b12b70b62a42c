import { type Level, pino } from 'pino';
import type { Log } from '../core/ports.ts';

/** Keys whose values never reach a log, whatever they are called in their cloud's spelling. */
const SECRET = /^(claims|authorization|.*token|.*secret.*|password|.*accountkey|.*connectionstring|.*credential.*)$/i;
/** `nextToken` and the like say nothing, but nothing is lost by hiding them either. */
const HIDDEN = '[redacted]';
const MAX_DEPTH = 12;

export interface LogOptions {
  readonly level: Extract<Level, 'debug' | 'info' | 'warn' | 'error'>;
  readonly stream: { write(line: string): void };
}

/** JSON lines with time, level, message and fields; secrets and personal data are redacted by key at any depth. */
export function createLog({ level, stream }: LogOptions): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => redact(fields, 0) as Record<string, unknown>,
      },
    },
    stream,
  );
}

function redact(value: unknown, depth: number): unknown {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[deeper]';
  if (Array.isArray(value)) return value.map((one) => redact(one, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, SECRET.test(key) ? HIDDEN : redact(one, depth + 1)]),
  );
}
