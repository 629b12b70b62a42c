import type { AzureOptions } from '../../shared/azure/clients.ts';
import { azure } from '../../shared/azure/registry.ts';
import type { Resource } from '../../shared/core/model.ts';
import type { CloudScope, ListFilter, ResourceType, ScopeRequest } from '../../shared/core/ports.ts';
import { HastyClock, type Scripted, type Seen, SUBSCRIPTION, scripted } from './scripted.ts';

export const signal = () => AbortSignal.timeout(20_000);
export const FILTER: ListFilter = { ownerTags: ['gleaner-owner'] };

/** A scripted server with one scope opened on it. */
export async function opened(
  answer: (request: Seen, origin: string) => Scripted,
  options: Partial<AzureOptions> = {},
  request: ScopeRequest = { subscriptions: [SUBSCRIPTION] },
) {
  const server = await scripted(answer);
  const clock = new HastyClock();
  const cloud = azure({ clock, endpoint: server.origin, ...options });
  const { scopes } = await cloud.open(request, signal());
  const scope = scopes[0] as CloudScope;
  return {
    server,
    clock,
    cloud,
    scope,
    disks: typeOf(scope, 'managed-disk'),
    nics: typeOf(scope, 'network-interface'),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export function typeOf(scope: CloudScope, name: string): ResourceType {
  const type = scope.types.find((one) => one.name === name);
  if (!type) throw new Error(`no type ${name}`);
  return type;
}

/** All that was yielded, and the error that ended it, if one did. */
export async function drain(
  pages: AsyncIterable<readonly Resource[]>,
): Promise<{ resources: Resource[]; error?: unknown }> {
  const resources: Resource[] = [];
  try {
    for await (const page of pages) resources.push(...page);
    return { resources };
  } catch (error) {
    return { resources, error };
  }
}

export const ref = (id: string) => ({ id, key: `azure:${id.toLowerCase()}` });
