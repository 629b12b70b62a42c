import type { World } from '../world/world.ts';
import type { StateName } from './rows.ts';

export interface StateChange {
  readonly region: string;
  readonly instanceId: string;
  readonly state: StateName;
  readonly time: Date;
}

/** The event as EventBridge delivers it. */
export interface StateChangeEvent {
  readonly version: '0';
  readonly id: string;
  readonly 'detail-type': 'EC2 Instance State-change Notification';
  readonly source: 'aws.ec2';
  readonly account: string;
  readonly time: string;
  readonly region: string;
  readonly resources: readonly string[];
  readonly detail: { readonly 'instance-id': string; readonly state: string };
}

/** EventBridge delivers by best effort: what an event goes through before it arrives. */
export interface EventFaults {
  /** Never arrives. */
  lose?: (change: StateChange) => boolean;
  /** Arrives so much later; several numbers = so many times. Default: once, at once. */
  delaysMs?: (change: StateChange) => readonly number[];
}

export class EventFeed {
  readonly #world: World;
  readonly #listeners: ((event: StateChangeEvent) => void)[] = [];
  readonly faults: EventFaults = {};
  #serial = 0;

  constructor(world: World) {
    this.#world = world;
  }

  listen(listener: (event: StateChangeEvent) => void): void {
    this.#listeners.push(listener);
  }

  emit(change: StateChange): void {
    if (this.faults.lose?.(change)) return;
    this.#serial += 1;
    const event = toEvent(change, `00000000-0000-4000-8000-${String(this.#serial).padStart(12, '0')}`);
    const deliver = () => {
      for (const listener of this.#listeners) listener(event);
    };
    for (const delayMs of this.faults.delaysMs?.(change) ?? [0]) {
      if (delayMs === 0) deliver();
      else this.#world.at(new Date(this.#world.clock.now().getTime() + delayMs), deliver);
    }
  }
}

function toEvent({ region, instanceId, state, time }: StateChange, id: string): StateChangeEvent {
  return {
    version: '0',
    id,
    'detail-type': 'EC2 Instance State-change Notification',
    source: 'aws.ec2',
    account: '123456789012',
    time: `${time.toISOString().slice(0, 19)}Z`,
    region,
    resources: [`arn:aws:ec2:${region}:123456789012:instance/${instanceId}`],
    detail: { 'instance-id': instanceId, state },
  };
}
