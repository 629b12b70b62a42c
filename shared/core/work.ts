import * as z from 'zod';
import { inputError } from './policy.ts';
import { REAP_BATCH, type Work } from './ports.ts';

const text = z.string().min(1);
const time = z.iso.datetime();
const names = z.array(text).optional();

const resourceId = z.strictObject({ key: text, id: text, type: text });

const request = z.strictObject({
  scopeIds: names,
  regions: names,
  subscriptions: names,
  cluster: text.optional(),
  resourceGroup: text.optional(),
  vm: text.optional(),
});

const event = z.strictObject({
  eventId: text,
  cloud: text,
  change: z.enum(['started', 'deleting', 'deleted']),
  scopeId: text,
  vmId: text,
  place: z.string(),
  time,
});

/** What goes through the queues. Strict, since what comes out of a queue leads to deletions. */
const workSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('reap'),
    runId: text,
    scopeId: text,
    notBefore: time,
    attempt: z.int().min(0),
    items: z.array(resourceId).min(1).max(REAP_BATCH),
    eventTime: time.optional(),
  }),
  z.strictObject({ kind: z.literal('sweep'), runId: text, request, attempt: z.int().min(0) }),
  z.strictObject({ kind: z.literal('event'), event }),
]);

/** @throws InputError naming the field */
export function parseWork(body: unknown): Work {
  const parsed = workSchema.safeParse(body);
  if (!parsed.success) throw inputError('work', parsed.error);
  return parsed.data;
}
