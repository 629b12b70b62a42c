import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import type { Notice, Notifier } from '../core/ports.ts';

/** What rules match on; docs/events.md describes the details. */
const DETAIL_TYPES: Readonly<Record<Notice['type'], string>> = {
  'resource-deleted': 'Gleaner Resource Deleted',
  'sweep-finished': 'Gleaner Sweep Finished',
  'breaker-tripped': 'Gleaner Breaker Tripped',
  'item-given-up': 'Gleaner Item Given Up',
};

export interface EventBridgeOptions {
  readonly region: string;
  readonly busName: string;
}

/** Tells an EventBridge bus. */
export class EventBridgeNotifier implements Notifier {
  readonly #client: EventBridgeClient;
  readonly #busName: string;

  constructor({ region, busName }: EventBridgeOptions) {
    this.#client = new EventBridgeClient({
      region,
      maxAttempts: 4,
      requestHandler: { connectionTimeout: 3000, requestTimeout: 5000, throwOnRequestTimeout: true },
    });
    this.#busName = busName;
  }

  /** @throws Error when the bus did not take it: PutEvents answers 200 to a refused entry, and says so only inside. */
  async notify({ type, detail }: Notice): Promise<void> {
    const entry = {
      EventBusName: this.#busName,
      Source: 'gleaner',
      DetailType: DETAIL_TYPES[type],
      Detail: JSON.stringify(detail),
    };
    const { FailedEntryCount, Entries } = await this.#client.send(new PutEventsCommand({ Entries: [entry] }));
    if (FailedEntryCount) throw new Error(`${Entries?.[0]?.ErrorCode}: ${Entries?.[0]?.ErrorMessage}`);
  }
}
