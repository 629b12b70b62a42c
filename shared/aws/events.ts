import * as z from 'zod';
import type { VmEvent } from '../core/model.ts';
import { inputError } from '../core/policy.ts';
import { isInstanceId } from './ids.ts';

const CHANGES: Readonly<Record<string, VmEvent['change']>> = {
  running: 'started',
  'shutting-down': 'deleting',
  terminated: 'deleted',
};
const DETAIL_TYPE = 'EC2 Instance State-change Notification';

const envelope = z.looseObject({ source: z.string(), 'detail-type': z.string() });

const stateChange = z.looseObject({
  id: z.string().min(1),
  region: z.string().regex(/^[a-z]{2,}(-[a-z]+)+-\d+$/, 'must be a region'),
  time: z.iso.datetime({ offset: true }),
  detail: z.looseObject({
    'instance-id': z.string().refine(isInstanceId, 'must be an instance id'),
    state: z.enum(['pending', 'running', 'stopping', 'stopped', 'shutting-down', 'terminated']),
  }),
});

/**
 * An EventBridge event of EC2. Other services' events and other states of an instance are none of ours: an empty list.
 * @throws InputError naming the field
 */
export function parseEc2Event(raw: unknown): VmEvent[] {
  const outer = envelope.safeParse(raw);
  if (!outer.success) throw inputError('event', outer.error);
  if (outer.data.source !== 'aws.ec2' || outer.data['detail-type'] !== DETAIL_TYPE) return [];
  const parsed = stateChange.safeParse(raw);
  if (!parsed.success) throw inputError('event', parsed.error);
  const { id, region, time, detail } = parsed.data;
  const change = CHANGES[detail.state];
  if (!change) return [];
  const vmId = detail['instance-id'].toLowerCase();
  return [{ eventId: id, cloud: 'aws', change, scopeId: `aws:${region}`, vmId, place: region, time: new Date(time) }];
}
