import type { EC2Client } from '@aws-sdk/client-ec2';
import { chunks } from '../core/chunks.ts';
import { asCloudError } from '../core/errors.ts';
import type { Resource } from '../core/model.ts';
import type { ListFilter, ReadResult, ResourceId } from '../core/ports.ts';
import { belongsToCluster } from '../core/protections.ts';
import { FILTER_VALUES } from './describe.ts';
import { isCandidate } from './tags.ts';

/** What the resource types of one region share. */
export interface RegionContext {
  readonly region: string;
  readonly ec2: EC2Client;
  /** Native ids of a resource group's members, read once, where the request names one. */
  readonly members?: () => Promise<ReadonlySet<string>>;
}

/** Those that belong to the request's group, where it names one. */
export async function membersOnly(context: RegionContext, resources: readonly Resource[]): Promise<Resource[]> {
  const members = await context.members?.();
  return resources.filter(({ id }) => !members || members.has(id));
}

/** What the server's filter (free, tagged) leaves to the client: tags of ours, the cluster's, members of the group. */
export async function candidatesOf(
  context: RegionContext,
  resources: readonly Resource[],
  filter: ListFilter,
): Promise<Resource[]> {
  const { cluster, ownerTags } = filter;
  return (await membersOnly(context, resources)).filter(
    (resource) =>
      resource.state === 'free' &&
      isCandidate(resource, ownerTags) &&
      (cluster === undefined || belongsToCluster(resource, [cluster])),
  );
}

/**
 * Reads by id as a filter, since the API's own id parameter fails as a whole on one unknown id. What a complete answer does
 * not have is gone; a batch that failed says nothing about any of its own.
 */
export async function readByIds(
  items: readonly Pick<ResourceId, 'key' | 'id'>[],
  describe: (ids: readonly string[]) => Promise<readonly Resource[]>,
  operation: string,
): Promise<Map<string, ReadResult>> {
  const results = new Map<string, ReadResult>();
  for (const batch of chunks(items, FILTER_VALUES)) {
    try {
      const found = new Map((await describe(batch.map(({ id }) => id))).map((resource) => [resource.key, resource]));
      for (const { key } of batch) {
        const resource = found.get(key);
        results.set(key, resource ? { status: 'found', resource } : { status: 'gone' });
      }
    } catch (cause) {
      const error = asCloudError(cause, operation);
      for (const { key } of batch) results.set(key, { status: 'failed', error });
    }
  }
  return results;
}
