import * as z from 'zod';
import type { StorageAccess } from '../../shared/azure/storage.ts';
import { InputError } from '../../shared/core/errors.ts';
import { inputError, type Policy, parsePolicy } from '../../shared/core/policy.ts';

const text = z.string().min(1);
const url = z.url({ protocol: /^https?$/ });
const list = text.transform((names) => names.split(',').map((name) => name.trim().toLowerCase())).pipe(z.array(text));

const schema = z.object({
  GLEANER_MODE: z.enum(['observe', 'enforce']).default('observe'),
  GLEANER_POLICY: text.optional(),
  GLEANER_SUBSCRIPTIONS: list,
  GLEANER_RESOURCE_GROUPS: list.optional(),
  GLEANER_STORAGE: text.optional(),
  GLEANER_STORAGE__queueServiceUri: url.optional(),
  GLEANER_STORAGE__tableServiceUri: url.optional(),
  GLEANER_STORAGE__credential: z.literal('managedidentity').optional(),
  GLEANER_STORAGE__clientId: text.optional(),
  GLEANER_TABLE: text,
  GLEANER_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  AZURE_RESOURCE_MANAGER_ENDPOINT: url.optional(),
  AZURE_AUTHORITY_HOST: url.optional(),
});

/** An account by its connection string, or by the addresses of its services and an identity. */
type StorageSettings =
  | Extract<StorageAccess, { connectionString: string }>
  | { readonly queueUrl: string; readonly tableUrl: string };

/** What the deployment sets. */
export interface Environment {
  readonly mode: 'observe' | 'enforce';
  readonly policy: Policy;
  /** Lower-cased ids. */
  readonly subscriptions: readonly string[];
  /** Lower-cased names; undefined = all of the subscriptions. */
  readonly resourceGroups: readonly string[] | undefined;
  readonly storage: StorageSettings;
  readonly managedIdentityClientId: string | undefined;
  readonly table: string;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly endpoint: string | undefined;
  readonly authorityHost: string | undefined;
}

/**
 * Reads the deployment's settings once, strictly: a wrong deployment fails at its first call, with the variable's name.
 * @throws InputError
 */
export function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(set);
  if (!parsed.success) throw inputError('environment', parsed.error);
  const settings = parsed.data;
  const policy = parsePolicy(settings.GLEANER_POLICY ?? {});
  return {
    // Both must say enforce: whoever can edit only one of them cannot start deletions.
    mode: policy.mode === 'observe' ? 'observe' : settings.GLEANER_MODE,
    policy,
    subscriptions: settings.GLEANER_SUBSCRIPTIONS,
    resourceGroups: settings.GLEANER_RESOURCE_GROUPS,
    storage: storageOf(settings),
    managedIdentityClientId: settings.GLEANER_STORAGE__clientId,
    table: settings.GLEANER_TABLE,
    logLevel: settings.GLEANER_LOG_LEVEL,
    endpoint: settings.AZURE_RESOURCE_MANAGER_ENDPOINT,
    authorityHost: settings.AZURE_AUTHORITY_HOST,
  };
}

function storageOf(settings: z.infer<typeof schema>): StorageSettings {
  const connectionString = settings.GLEANER_STORAGE;
  const queueUrl = settings.GLEANER_STORAGE__queueServiceUri;
  const tableUrl = settings.GLEANER_STORAGE__tableServiceUri;
  if (connectionString !== undefined) {
    if (queueUrl === undefined && tableUrl === undefined) return { connectionString };
    throw new InputError('environment.GLEANER_STORAGE', 'set either this or the addresses of the services');
  }
  if (queueUrl === undefined) throw new InputError('environment.GLEANER_STORAGE__queueServiceUri', 'missing');
  if (tableUrl === undefined) throw new InputError('environment.GLEANER_STORAGE__tableServiceUri', 'missing');
  return { queueUrl, tableUrl };
}
