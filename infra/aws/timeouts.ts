import type { AwsFunction } from '../build.ts';

/** Timeouts of the functions in seconds; queues' visibility and alarms follow from them. */
export const TIMEOUT_S: Readonly<Record<AwsFunction, number>> = {
  'vm-event': 60,
  schedule: 900,
  invoke: 900,
  reap: 300,
};
