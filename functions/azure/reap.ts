import type { InvocationContext } from '@azure/functions';
import { reap } from '../../shared/core/engine.ts';
import { parseWork } from '../../shared/core/work.ts';
import { bodyOf, callOf, wire } from './wire.ts';

/** Rechecks and deletes what the other functions found. What must wait is back in the queue before a message counts as done. */
export async function handler(message: unknown, context: InvocationContext): Promise<void> {
  const wired = wire(context);
  const work = parseWork(bodyOf(message));
  if (work.kind !== 'reap') throw new Error(`a ${work.kind} message in the queue of deletions`);
  await reap(wired.engine, work, callOf(wired));
}
