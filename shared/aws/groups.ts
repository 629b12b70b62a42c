import { paginateListGroupResources, ResourceGroupsClient } from '@aws-sdk/client-resource-groups';
import { CloudError } from '../core/errors.ts';
import type { RequestCounter } from './clients.ts';
import { called } from './describe.ts';

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
  const client = new ResourceGroupsClient({ region, maxAttempts: 5 });
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
    for (;;) {
      const page = await called(OPERATION, () => pages.next());
      if (page.done) return members;
      const { QueryErrors = [], Resources, ResourceIdentifiers } = page.value;
      const [wrong] = QueryErrors;
      if (wrong) throw incomplete(wrong.ErrorCode ?? 'QueryError', wrong.Message ?? 'the group could not be resolved');
      if (!Resources && !ResourceIdentifiers) throw incomplete('IncompleteAnswer', 'the answer has no list');
      const arns = [...(Resources ?? []).map(({ Identifier }) => Identifier), ...(ResourceIdentifiers ?? [])];
      for (const one of arns) {
        const id = /\/((?:vol|eni)-[0-9a-f]+)$/.exec(one?.ResourceArn ?? '')?.[1];
        if (id) members.add(id);
      }
    }
  } finally {
    client.destroy();
  }
}

function incomplete(nativeCode: string, message: string): CloudError {
  return new CloudError({ code: 'unavailable', nativeCode, operation: OPERATION, message });
}
