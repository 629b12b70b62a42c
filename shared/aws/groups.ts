import { paginateListGroupResources, ResourceGroupsClient } from '@aws-sdk/client-resource-groups';
import { clientSettings, type RequestCounter } from './clients.ts';
import { incomplete, pagesOf } from './describe.ts';

const OPERATION = 'ListGroupResources';

/**
 * Native ids of the volumes and ENIs in a Resource Groups group, by name or ARN.
 * @throws CloudError, also when the answer has QueryErrors: an empty list that looks genuine may be none
 */
export async function groupMembers(
  region: string,
  group: string,
  counter: RequestCounter,
  signal: AbortSignal,
): Promise<Set<string>> {
  const client = new ResourceGroupsClient(clientSettings(region));
  client.middlewareStack.add(
    (next) => (args) => {
      counter.add(OPERATION);
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low', name: 'gleanerCount' },
  );
  const members = new Set<string>();
  try {
    const pages = paginateListGroupResources({ client }, { Group: group }, { abortSignal: signal });
    for await (const { QueryErrors = [], Resources, ResourceIdentifiers } of pagesOf(OPERATION, pages)) {
      const [wrong] = QueryErrors;
      if (wrong) throw incomplete(OPERATION, wrong.Message ?? 'the group could not be resolved', wrong.ErrorCode);
      if (!Resources && !ResourceIdentifiers) throw incomplete(OPERATION, 'the answer has no list');
      const arns = [...(Resources ?? []).map(({ Identifier }) => Identifier), ...(ResourceIdentifiers ?? [])];
      for (const one of arns) {
        const id = /\/((?:vol|eni)-[0-9a-f]+)$/.exec(one?.ResourceArn ?? '')?.[1];
        if (id) members.add(id);
      }
    }
    return members;
  } finally {
    client.destroy();
  }
}
