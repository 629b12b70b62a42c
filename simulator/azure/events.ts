import type { World } from '../world/world.ts';
import { TENANT } from './shapes.ts';
import { Webhook, type WebhookOptions } from './webhook.ts';

export interface VmChange {
  readonly subscription: string;
  readonly vmId: string;
  readonly change: 'write' | 'delete';
  readonly time: Date;
}

/** Event Grid delivers at least once and in any order: what an event goes through before it arrives. */
export interface EventFaults {
  /** Never arrives. */
  lose?: (change: VmChange) => boolean;
  /** Arrives so much later; several numbers = so many times. Default: once, at once. */
  delaysMs?: (change: VmChange) => readonly number[];
}

export type EventSchema = 'EventGridSchema' | 'CloudEventSchemaV1_0';

/** What a delivery's body holds, parsed: an array in Event Grid's own schema, one event in CloudEvents 1.0. */
export type Delivery = readonly object[] | object;

export class EventFeed {
  readonly #world: World;
  readonly #listeners: { schema: EventSchema; listener: (delivery: Delivery) => void }[] = [];
  readonly faults: EventFaults = {};
  #serial = 0;

  constructor(world: World) {
    this.#world = world;
  }

  listen(listener: (delivery: Delivery) => void, schema: EventSchema = 'EventGridSchema'): void {
    this.#listeners.push({ schema, listener });
  }

  /** Delivers to an HTTP endpoint, with Event Grid's retries. */
  push(url: string, options: WebhookOptions = {}): Webhook {
    const webhook = new Webhook(this.#world, url, options);
    this.listen((delivery) => webhook.deliver(delivery), options.schema);
    return webhook;
  }

  emit(change: VmChange): void {
    if (this.faults.lose?.(change)) return;
    this.#serial += 1;
    const notice = toNotice(change, this.#serial);
    const deliver = () => {
      for (const { schema, listener } of this.#listeners) {
        listener(schema === 'EventGridSchema' ? [toGridEvent(notice)] : toCloudEvent(notice));
      }
    };
    for (const delayMs of this.faults.delaysMs?.(change) ?? [0]) {
      if (delayMs === 0) deliver();
      else this.#world.at(new Date(this.#world.clock.now().getTime() + delayMs), deliver);
    }
  }
}

type Notice = ReturnType<typeof toNotice>;

/** The ids' casing changes from event to event, as it does with who called ARM, and how. */
function toNotice({ subscription, vmId, change, time }: VmChange, serial: number) {
  const casings = [(id: string) => id, (id: string) => id.toUpperCase(), (id: string) => id.toLowerCase()];
  const resourceUri = (casings[serial % casings.length] as (id: string) => string)(vmId);
  const operationName =
    serial % 2 === 0
      ? `Microsoft.Compute/virtualMachines/${change}`
      : `MICROSOFT.COMPUTE/VIRTUALMACHINES/${change.toUpperCase()}`;
  const correlationId = `c0441e1a-0000-4000-8000-${String(serial).padStart(12, '0')}`;
  return {
    id: `e7e17000-0000-4000-8000-${String(serial).padStart(12, '0')}`,
    type:
      change === 'delete' ? 'Microsoft.Resources.ResourceDeleteSuccess' : 'Microsoft.Resources.ResourceWriteSuccess',
    topic: `/subscriptions/${subscription}`,
    subject: resourceUri,
    time: time.toISOString(),
    data: {
      authorization: {
        scope: resourceUri,
        action: operationName,
        evidence: { role: 'Contributor', principalId: '0123456789abcdef0123456789abcdef' },
      },
      // Personal data of nobody: what a reader must neither need nor keep.
      claims: {
        name: 'Erika Mustermann',
        ipaddr: '192.0.2.17',
        'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress': 'erika.mustermann@example.com',
      },
      correlationId,
      httpRequest: {
        clientRequestId: correlationId,
        clientIpAddress: '192.0.2.17',
        method: change === 'delete' ? 'DELETE' : 'PUT',
        url: '',
      },
      resourceProvider: 'Microsoft.Compute',
      resourceUri,
      operationName,
      status: 'Succeeded',
      subscriptionId: subscription,
      tenantId: TENANT,
    },
  };
}

function toGridEvent({ id, type, topic, subject, time, data }: Notice) {
  return { topic, subject, eventType: type, eventTime: time, id, data, dataVersion: '2', metadataVersion: '1' };
}

function toCloudEvent({ id, type, topic, subject, time, data }: Notice) {
  return { id, source: topic, subject, type, time, data, specversion: '1.0' };
}
