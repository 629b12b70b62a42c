import * as z from 'zod';
import { InputError } from './errors.ts';
import type { Mode } from './model.ts';
import { inputError } from './policy.ts';
import type { ScopeRequest } from './ports.ts';

const text = z.string().trim().min(1, 'must not be empty');

const scopeSchema = z
  .strictObject({
    region: z.union([text, z.array(text).min(1)]).optional(),
    subscription: z.union([text, z.array(text).min(1)]).optional(),
    resourceGroup: text.optional(),
    cluster: text.optional(),
    vm: text.optional(),
  })
  .default({});

const callSchema = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.enum(['plan', 'sweep']),
    scope: scopeSchema,
    mode: z.enum(['observe', 'enforce']).optional(),
  }),
  z.strictObject({ action: z.literal('explain'), id: text, scope: scopeSchema }),
  z.strictObject({ action: z.literal('history'), limit: z.int().min(1).max(1000).default(100) }),
]);

export type CallRequest =
  | { readonly action: 'plan' | 'sweep'; readonly scope: ScopeRequest; readonly mode: Mode }
  | { readonly action: 'explain'; readonly id: string; readonly scope: ScopeRequest }
  | { readonly action: 'history'; readonly limit: number };

/**
 * A call by hand, as the functions take it:
 * `{"action":"plan|sweep|explain|history","scope":{"resourceGroup"|"cluster"|"vm"|"region"|"subscription":…},"mode":…}`.
 * The mode defaults to the deployment's, and a deployment in observe cannot be talked into enforce.
 * @throws InputError naming the field
 */
export function parseCall(body: unknown, deployed: Mode): CallRequest {
  const parsed = callSchema.safeParse(body);
  if (!parsed.success) throw inputError('body', parsed.error);
  const call = parsed.data;
  if (call.action === 'history') return call;
  const scope = toRequest(call.scope);
  if (call.action === 'explain') return { action: 'explain', id: call.id, scope };
  const mode = call.mode ?? deployed;
  if (mode === 'enforce' && deployed === 'observe') {
    throw new InputError('body.mode', 'this deployment is in observe: it deletes nothing, whoever asks');
  }
  return { action: call.action, scope, mode };
}

function toRequest({ region, subscription, ...rest }: z.infer<typeof scopeSchema>): ScopeRequest {
  return {
    ...rest,
    ...(region !== undefined && { regions: [region].flat() }),
    ...(subscription !== undefined && { subscriptions: [subscription].flat() }),
  };
}
