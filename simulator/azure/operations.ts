import type { Answer } from '../http.ts';
import type { World } from '../world/world.ts';
import { ArmError } from './errors.ts';
import { armTime, type Body } from './shapes.ts';

export interface Pace {
  /** How long the operation takes. */
  deletionMs: number;
  /** What the server asks pollers to wait; undefined = no header. */
  retryAfterS: number | undefined;
}

interface Operation {
  readonly id: string;
  readonly started: Date;
  ended?: Date;
  error?: ArmError;
  /** What there is at the end, where the operation makes something. */
  readonly made?: () => Body | undefined;
}

/** Long-running operations: begun with 202, then polled by their status document or by their result. */
export class Operations {
  readonly #world: World;
  readonly #running = new Map<string, Operation>();
  #serial = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** `finish` runs when the time is up; an ArmError that it throws is the operation's end. `base`: URL up to `…/locations/<l>`. */
  begin(base: string, names: OperationNames, pace: Pace, finish: () => void, made?: () => Body | undefined): Answer {
    this.#serial += 1;
    const id = `0p-${String(this.#serial).padStart(8, '0')}`;
    const operation: Operation = { id, started: this.#world.now(), ...(made && { made }) };
    this.#running.set(operation.id, operation);
    const end = () => {
      operation.ended = this.#world.clock.now();
      try {
        finish();
      } catch (error) {
        if (!(error instanceof ArmError)) throw error;
        operation.error = error;
      }
    };
    if (pace.deletionMs === 0) end();
    else this.#world.at(new Date(operation.started.getTime() + pace.deletionMs), end);
    const query = `?api-version=${names.apiVersion}`;
    const headers = {
      'azure-asyncoperation': `${base}/${names.status}/${operation.id}${query}`,
      location: `${base}/${names.result}/${operation.id}${query}`,
      ...retryAfter(pace),
    };
    return { status: 202, headers, body: '' };
  }

  /** The status document, or with `result` what the Location header's URL answers. */
  poll(id: string, result: boolean, pace: Pace): Answer {
    const operation = this.#running.get(id);
    if (!operation) throw new ArmError(404, 'NotFound', `Operation ${id} was not found.`);
    const { started, ended, error, made } = operation;
    if (result) {
      if (!ended) return { status: 202, headers: retryAfter(pace), body: '' };
      if (error) throw error;
      const body = made?.();
      return body ? { status: 200, body: JSON.stringify(body) } : { status: 204, body: '' };
    }
    const status = ended ? (error ? 'Failed' : 'Succeeded') : 'InProgress';
    const times = { startTime: armTime(started), ...(ended && { endTime: armTime(ended) }) };
    const body = { ...times, status, ...(error && { error: error.body }), name: id };
    return { status: 200, headers: ended ? {} : retryAfter(pace), body: JSON.stringify(body) };
  }
}

/** Path segments of a provider's operations: compute says `DiskOperations`, network `operations`. */
export interface OperationNames {
  readonly status: string;
  readonly result: string;
  readonly apiVersion: string;
}

function retryAfter({ retryAfterS }: Pace): Record<string, string> {
  return retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
}
