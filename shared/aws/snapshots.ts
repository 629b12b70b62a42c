import { CreateSnapshotCommand, DescribeSnapshotsCommand, type EC2Client, type Snapshot } from '@aws-sdk/client-ec2';
import type { Resource } from '../core/model.ts';
import type { SnapshotState } from '../core/ports.ts';
import { called, filter, listOf } from './describe.ts';

const TOKEN_TAG = 'gleaner-snapshot-token';
/** Tags that begin so are AWS's own and cannot be set by anybody else. */
const RESERVED = /^aws:/i;

/** Starts a snapshot of a volume, or finds the one that was started under the same token. @throws CloudError */
export async function snapshotVolume(
  ec2: EC2Client,
  resource: Resource,
  token: string,
  signal: AbortSignal,
): Promise<SnapshotState> {
  const Filters = [filter('volume-id', [resource.id]), filter(`tag:${TOKEN_TAG}`, [token])];
  const before = await called('DescribeSnapshots', () =>
    ec2.send(new DescribeSnapshotsCommand({ OwnerIds: ['self'], Filters }), { abortSignal: signal }),
  );
  const usable = listOf(before.Snapshots, 'DescribeSnapshots').filter(({ State }) => State !== 'error');
  const known = usable.find(({ State }) => State === 'completed') ?? usable[0];
  if (known) return toState(known);
  const own = Object.entries(resource.tags).filter(([key]) => !RESERVED.test(key) && key !== TOKEN_TAG);
  const Tags = [...own.slice(0, 49), [TOKEN_TAG, token] as const].map(([Key, Value]) => ({ Key, Value }));
  const input = {
    VolumeId: resource.id,
    Description: `Gleaner: ${resource.id} before its deletion`,
    TagSpecifications: [{ ResourceType: 'snapshot' as const, Tags }],
  };
  const made = await called('CreateSnapshot', () =>
    ec2.send(new CreateSnapshotCommand(input), { abortSignal: signal }),
  );
  return toState(made);
}

function toState({ SnapshotId = '', State }: Pick<Snapshot, 'SnapshotId' | 'State'>): SnapshotState {
  if (State === 'completed') return { id: SnapshotId, state: 'completed' };
  return { id: SnapshotId, state: State === 'error' ? 'failed' : 'pending' };
}
