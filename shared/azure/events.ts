import * as z from 'zod';
import { InputError } from '../core/errors.ts';
import type { VmEvent } from '../core/model.ts';
import { parseArmIdOf, VM_TYPE } from './arm-id.ts';

const text = z.string().min(1).max(4096);
const time = z.iso.datetime({ offset: true });

/** What is read of an event's data; `claims`, `authorization` and `httpRequest` hold personal data and are never looked at. */
const data = z.object({ operationName: text.optional(), resourceUri: text.optional() });

const gridEvent = z.object({ id: text, eventType: text, eventTime: time, data });
const cloudEvent = z.object({ specversion: z.literal('1.0'), id: text, type: text, time, data });

interface Notice {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly data: z.infer<typeof data>;
}

const CHANGES: Readonly<Record<string, Readonly<Record<string, VmEvent['change']>>>> = {
  'microsoft.resources.resourcedeletesuccess': { 'microsoft.compute/virtualmachines/delete': 'deleted' },
  'microsoft.resources.resourcewritesuccess': { 'microsoft.compute/virtualmachines/write': 'started' },
};

/**
 * Event Grid's events of a subscription, in its own schema (usually an array) or as CloudEvents 1.0 (one, or a batch).
 * Others than a VM's deletion or write give nothing: scale-set instances too, which have no id of a VM.
 * @throws InputError naming the field
 */
export function parseAzureEvent(raw: unknown): readonly VmEvent[] {
  const events: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
  return events.flatMap((event, index) => parseOne(event, Array.isArray(raw) ? `event.${index}` : 'event'));
}

function parseOne(raw: unknown, field: string): VmEvent[] {
  const { id, type, time: at, data: details } = readNotice(raw, field);
  const changes = CHANGES[type.toLowerCase()];
  if (!changes) return [];
  if (details.operationName === undefined) throw new InputError(`${field}.data.operationName`, 'missing');
  const change = changes[details.operationName.toLowerCase()];
  if (!change) return [];
  if (details.resourceUri === undefined) throw new InputError(`${field}.data.resourceUri`, 'missing');
  const vm = parseArmIdOf(VM_TYPE, details.resourceUri);
  if (!vm && /^\/subscriptions\/.+\/providers\//i.test(details.resourceUri)) return [];
  if (!vm) throw new InputError(`${field}.data.resourceUri`, 'not the id of a virtual machine');
  const scopeId = `azure:${vm.subscription.toLowerCase()}`;
  return [{ eventId: id, cloud: 'azure', change, scopeId, vmId: vm.id, place: vm.place, time: new Date(at) }];
}

function readNotice(raw: unknown, field: string): Notice {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw new InputError(field, 'must be an object');
  if ('specversion' in raw) return read(cloudEvent, raw, field);
  const { id, eventType, eventTime, data: details } = read(gridEvent, raw, field);
  return { id, type: eventType, time: eventTime, data: details };
}

function read<T>(schema: z.ZodType<T>, raw: object, field: string): T {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new InputError([field, ...(issue?.path ?? [])].join('.'), issue?.message ?? 'invalid');
}
