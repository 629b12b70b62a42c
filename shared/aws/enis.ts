import {
  DeleteNetworkInterfaceCommand,
  type DescribeNetworkInterfacesRequest,
  type NetworkInterface,
  paginateDescribeNetworkInterfaces,
} from '@aws-sdk/client-ec2';
import { chunks } from '../core/chunks.ts';
import type { Hold, Resource, UseState } from '../core/model.ts';
import type { ListFilter, ResourceType, VmIdentity } from '../core/ports.ts';
import { tagKeysWithPrefix } from '../core/tags.ts';
import { distinct, FILTER_VALUES, filter, listOf, PAGE_SIZE, pagesOf, tagsOf } from './describe.ts';
import { toCloudError } from './errors.ts';
import { ENI_TYPE, isInstanceId, isInstanceName, keyOf } from './ids.ts';
import { candidatesOf, membersOnly, type RegionContext, readByIds } from './region-context.ts';
import { CLUSTER_TAG_PREFIX, INSTANCE_ID_TAG, NO_MANAGE_TAG, NODE_ROLE_TAG } from './tags.ts';

const OPERATION = 'DescribeNetworkInterfaces';

/** Elastic network interfaces. EC2 tells no creation time of them. */
export function networkInterfaces(context: RegionContext): ResourceType {
  const { ec2 } = context;
  const describe = (input: DescribeNetworkInterfacesRequest, signal: AbortSignal) =>
    describeEnis(context, input, signal);
  return {
    name: ENI_TYPE,
    kind: 'nic',

    async *list(wanted: ListFilter, signal: AbortSignal) {
      const Filters = [filter('status', ['available']), filter('tag-key', ['*'])];
      for await (const page of describe({ Filters }, signal)) yield candidatesOf(context, page, wanted);
    },

    async find(vm: VmIdentity, signal: AbortSignal) {
      const found: Resource[] = [];
      const by = async (name: string, values: readonly string[]) => {
        for (const some of chunks(values, FILTER_VALUES))
          found.push(...(await all(describe({ Filters: [filter(name, some)] }, signal))));
      };
      // The CNI attaches ENIs long after the VM was seen, so its tag is asked for whatever was claimed. Gardener's nodes
      // run other CNIs: their owner is proven by name, which is one read more than by id, so here it is one less.
      if (isInstanceId(vm.id) && !isMcmNode(vm)) await by(`tag:${INSTANCE_ID_TAG}`, [vm.id.toLowerCase()]);
      const claimed = vm.claimed.filter(({ kind }) => kind === 'nic').map(({ id }) => id);
      await by('network-interface-id', claimed);
      const named = vm.tags === undefined || isMcmNode(vm);
      if (claimed.length === 0 && named && isInstanceName(vm.name)) await by('tag:Name', [vm.name]);
      return membersOnly(context, distinct(found));
    },

    get: (items, signal) =>
      readByIds(items, (ids) => all(describe({ Filters: [filter('network-interface-id', ids)] }, signal)), OPERATION),

    async delete(resource, signal) {
      try {
        await ec2.send(new DeleteNetworkInterfaceCommand({ NetworkInterfaceId: resource.id }), { abortSignal: signal });
      } catch (cause) {
        const error = toCloudError(cause, 'DeleteNetworkInterface');
        if (error.code !== 'gone') throw error;
      }
    },
  };
}

function isMcmNode({ tags = {} }: VmIdentity): boolean {
  return tags[NODE_ROLE_TAG] !== undefined && tagKeysWithPrefix({ tags }, CLUSTER_TAG_PREFIX).length > 0;
}

async function* describeEnis(
  { ec2, region }: RegionContext,
  input: DescribeNetworkInterfacesRequest,
  signal: AbortSignal,
) {
  const pages = paginateDescribeNetworkInterfaces({ client: ec2, pageSize: PAGE_SIZE }, input, { abortSignal: signal });
  for await (const page of pagesOf(OPERATION, pages)) {
    yield listOf(page.NetworkInterfaces, OPERATION).map((eni) => toResource(region, eni));
  }
}

async function all(pages: AsyncIterable<readonly Resource[]>): Promise<Resource[]> {
  return (await Array.fromAsync(pages)).flat();
}

const STATES: Readonly<Record<string, UseState>> = {
  available: 'free',
  pending: 'changing',
  attaching: 'changing',
  associated: 'changing',
  detaching: 'changing',
};

function toResource(region: string, eni: NetworkInterface): Resource {
  const tags = tagsOf(eni.TagSet);
  const id = eni.NetworkInterfaceId ?? '';
  const state = STATES[eni.Status ?? ''] ?? 'attached';
  const attachment = eni.Attachment;
  return {
    key: keyOf(region, id),
    id,
    cloud: 'aws',
    type: ENI_TYPE,
    kind: 'nic',
    name: tags.Name ?? id,
    place: region,
    tags,
    state: attachment && state === 'free' ? 'attached' : state,
    nativeState: eni.Status ?? 'missing',
    attachedTo: attachment ? [attachment.InstanceId ?? attachment.AttachmentId ?? 'unknown'] : [],
    createdAt: cniCreationTime(tags),
    holds: holdsOf(eni, tags),
    description: eni.Description,
    monthlyCostUsd: 0,
  };
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** The CNI notes it in a tag, RFC 3339; a value that is none is an odd time, which the judge keeps. */
function cniCreationTime(tags: Readonly<Record<string, string>>): Date | undefined {
  const text = tags['node.k8s.amazonaws.com/createdAt'];
  if (text === undefined) return undefined;
  return RFC3339.test(text) ? new Date(text) : new Date(Number.NaN);
}

function holdsOf(eni: NetworkInterface, tags: Readonly<Record<string, string>>): Hold[] {
  const holds: Hold[] = [];
  const hold = (code: string, detail: string) => holds.push({ code, detail });
  if (eni.RequesterManaged) hold('requester-managed', `RequesterManaged=true, ${eni.RequesterId ?? ''}`);
  if (eni.Operator?.Managed) hold('service-managed', `Operator.Managed, ${eni.Operator.Principal ?? ''}`);
  if (eni.InterfaceType !== undefined && eni.InterfaceType !== 'interface')
    hold('interface-type', `InterfaceType=${eni.InterfaceType}`);
  if (eni.Attachment?.InstanceOwnerId === 'amazon-elb') hold('load-balancer', 'InstanceOwnerId=amazon-elb');
  if (eni.Description?.startsWith('ELB ')) hold('load-balancer', `Description=${eni.Description}`);
  if (eni.Attachment?.AttachmentId?.startsWith('ela-attach-'))
    hold('service-attachment', `AttachmentId=${eni.Attachment.AttachmentId}`);
  // Somebody gave it an address of their own, which would be left without its place.
  if (eni.Association?.AllocationId) hold('elastic-ip', `AllocationId=${eni.Association.AllocationId}`);
  if (tags[NO_MANAGE_TAG] !== undefined) hold('no-manage', `tag ${NO_MANAGE_TAG}`);
  return holds;
}
