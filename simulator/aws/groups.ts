import type { ListGroupResourcesOutput } from '@aws-sdk/client-resource-groups';
import type { Answer } from '../http.ts';
import { Ec2Error } from './errors.ts';
import type { Region } from './region.ts';

const HEADERS = { 'content-type': 'application/json' };
const PAGE = 50;
/** EC2's names of errors that every service has, and Resource Groups' own. */
const NAMES: Readonly<Record<string, string>> = {
  UnauthorizedOperation: 'ForbiddenException',
  RequestLimitExceeded: 'TooManyRequestsException',
  AuthFailure: 'UnrecognizedClientException',
};

/** Resource Groups: a page of a group's members, or, where it cannot be resolved, an empty list beside QueryErrors. */
export function listGroupResources(region: Region, body: string): Answer {
  const { Group = '', MaxResults = PAGE, NextToken } = JSON.parse(body || '{}') as Request;
  const group = region.groups.get(Group.split('/').at(-1) ?? '');
  if (!group) throw new Ec2Error('NotFoundException', `Cannot find group: ${Group}`, 404);
  if (!(MaxResults >= 1 && MaxResults <= PAGE))
    throw new Ec2Error('BadRequestException', `MaxResults must be between 1 and ${PAGE}`);
  if (NextToken !== undefined && !/^[1-9]\d*$/.test(NextToken))
    throw new Ec2Error('BadRequestException', 'Invalid NextToken');
  const from = Number(NextToken ?? 0);
  const all = group.queryErrors ? [] : group.arns;
  const members = all.slice(from, from + MaxResults).map((ResourceArn) => ({ ResourceArn }));
  const answer = {
    Resources: members.map((Identifier) => ({ Identifier })),
    ResourceIdentifiers: members,
    QueryErrors: (group.queryErrors ?? []) as ListGroupResourcesOutput['QueryErrors'],
    ...(from + MaxResults < all.length && { NextToken: String(from + MaxResults) }),
  } satisfies ListGroupResourcesOutput;
  return { status: 200, headers: HEADERS, body: JSON.stringify(answer) };
}

/** An error as this service writes it. */
export function groupsFailed({ code, message, status }: Ec2Error): Answer {
  const headers = { ...HEADERS, 'x-amzn-errortype': NAMES[code] ?? code };
  return {
    status: code === 'RequestLimitExceeded' ? 429 : status,
    headers,
    body: JSON.stringify({ Message: message }),
  };
}

interface Request {
  readonly Group?: string;
  readonly MaxResults?: number;
  readonly NextToken?: string;
}
