import type { ListGroupResourcesOutput } from '@aws-sdk/client-resource-groups';
import type { Answer } from '../http.ts';
import type { Region } from './region.ts';

const HEADERS = { 'content-type': 'application/json' };

/** Resource Groups: a group's members, or, where it cannot be resolved, an empty list beside QueryErrors. */
export function listGroupResources(region: Region | undefined, body: string): Answer {
  const { Group = '' } = JSON.parse(body || '{}') as { Group?: string };
  const group = region?.groups.get(Group.split('/').at(-1) ?? '');
  if (!group) {
    const headers = { ...HEADERS, 'x-amzn-errortype': 'NotFoundException' };
    return { status: 404, headers, body: JSON.stringify({ Message: `Cannot find group: ${Group}` }) };
  }
  const members = group.queryErrors ? [] : group.arns.map((ResourceArn) => ({ ResourceArn }));
  const answer = {
    Resources: members.map((Identifier) => ({ Identifier })),
    ResourceIdentifiers: members,
    QueryErrors: (group.queryErrors ?? []) as ListGroupResourcesOutput['QueryErrors'],
  } satisfies ListGroupResourcesOutput;
  return { status: 200, headers: HEADERS, body: JSON.stringify(answer) };
}
