import type { Pipeline, PipelineResponse } from '@azure/core-rest-pipeline';
import { CloudError } from '../core/errors.ts';
import type { ArmClients } from './clients.ts';
import { classify, isGone, malformed, retryAfterOf, toCloudError } from './errors.ts';

const USUAL_INTERVAL_MS = 2_000;
const MAX_POLLS = 300;

/** The raw answer to the first request of a long-running operation. */
export interface FirstAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | undefined };
}

export interface Deletion {
  readonly operation: string;
  readonly clients: ArmClients;
  /** The client whose pipeline sends the polls. */
  readonly client: { readonly pipeline: Pipeline };
  /** Sends the DELETE and returns the raw answer. */
  start(): Promise<FirstAnswer>;
  /** Reads the resource; must throw `ResourceNotFound` once it is gone. */
  read(): Promise<unknown>;
}

/**
 * Deletes, and returns only once the cloud says that the resource is gone. The SDK's own poller is not used: it counts
 * a 202 that names no operation, and a poll without a status, as success, and keeps the error code of a failed operation
 * in its message only. What ends unclearly here is settled by reading the resource.
 * @throws CloudError
 */
export async function deleteAndWait(deletion: Deletion, signal: AbortSignal): Promise<void> {
  const { operation, clients } = deletion;
  let answer: FirstAnswer;
  try {
    answer = await deletion.start();
  } catch (error) {
    const failure = toCloudError(error, operation, signal);
    if (isGone(failure)) return;
    throw failure;
  }
  if (answer.status === 200 || answer.status === 204) return;
  try {
    let state = next({ asyncUrl: undefined, location: undefined, waitMs: USUAL_INTERVAL_MS }, answer.headers);
    for (let polls = 0; polls < MAX_POLLS; polls += 1) {
      await clients.clock.sleep(state.waitMs, signal);
      const done = state.asyncUrl || state.location ? await poll(deletion, state, signal) : await isAbsent(deletion);
      if (done === true) return;
      if (done !== false) state = next(state, done.headers);
    }
  } catch (error) {
    const failure = toCloudError(error, operation, signal);
    if (!isGone(failure)) throw failure;
    // 'Not found' may be said of something else that the operation needed.
    if (await isAbsent(deletion)) return;
    throw malformed(operation, failure.message, failure.nativeCode);
  }
  throw malformed(operation, `not done after ${MAX_POLLS} polls`, 'StillRunning');
}

interface PollState {
  readonly asyncUrl: string | undefined;
  readonly location: string | undefined;
  readonly waitMs: number;
}

function next(before: PollState, headers: FirstAnswer['headers']): PollState {
  return {
    asyncUrl: headers.get('azure-asyncoperation') ?? headers.get('operation-location') ?? before.asyncUrl,
    location: headers.get('location') ?? before.location,
    waitMs: retryAfterOf(headers) ?? before.waitMs,
  };
}

/** True = done, an answer = still running. @throws CloudError when the operation failed */
async function poll(
  deletion: Deletion,
  state: PollState,
  signal: AbortSignal,
): Promise<true | PipelineResponse | false> {
  const url = state.asyncUrl ?? state.location ?? '';
  const response = await deletion.clients.follow(deletion.client, url, signal);
  const body = parse(response.bodyAsText);
  if (state.asyncUrl === undefined) {
    // Without a status document the HTTP status speaks: 202 running, 200 or 204 done.
    if (response.status === 202) return response;
    if (response.status === 200 || response.status === 204) return true;
    return settle(deletion, response, body);
  }
  const status = typeof body?.status === 'string' ? body.status.toLowerCase() : undefined;
  if (response.status >= 300 || status === undefined) return settle(deletion, response, body);
  if (status === 'succeeded') return true;
  if (status === 'failed' || status === 'canceled' || status === 'cancelled')
    throw failureOf(deletion, response, body, status);
  return response;
}

/** The poll did not say how it ended. If the resource is gone it ended well; an error of the poll's own is passed on. */
async function settle(deletion: Deletion, response: PipelineResponse, body: Body | undefined): Promise<boolean> {
  if (await isAbsent(deletion)) return true;
  if (response.status >= 300 && response.status !== 404)
    throw failureOf(deletion, response, body, `HTTP ${response.status}`);
  throw malformed(
    deletion.operation,
    `the operation's status was not to be had (HTTP ${response.status}), and the resource still exists`,
  );
}

async function isAbsent(deletion: Deletion): Promise<boolean> {
  try {
    await deletion.read();
    return false;
  } catch (error) {
    const failure = toCloudError(error, deletion.operation);
    if (isGone(failure)) return true;
    throw failure;
  }
}

interface Body {
  readonly status?: unknown;
  readonly error?: { readonly code?: unknown; readonly message?: unknown };
}

function parse(text: string | null | undefined): Body | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function failureOf(deletion: Deletion, response: PipelineResponse, body: Body | undefined, ended: string): CloudError {
  const code = typeof body?.error?.code === 'string' ? body.error.code : undefined;
  const message = typeof body?.error?.message === 'string' ? body.error.message : `the deletion ended as '${ended}'`;
  // A poll answers 200 when the operation failed: then only its code speaks. Cancelled = overtaken by another operation.
  const status = response.status < 300 ? undefined : response.status;
  const canonical = code === undefined && ended.startsWith('cancel') ? 'conflict' : classify({ status, code, message });
  return new CloudError({
    code: canonical,
    nativeCode: code ?? ended,
    operation: deletion.operation,
    message,
    retryAfterMs: retryAfterOf(response.headers),
  });
}
