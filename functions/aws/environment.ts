import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as z from 'zod';
import { InputError } from '../../shared/core/errors.ts';
import { inputError, type Policy, parsePolicy } from '../../shared/core/policy.ts';

const url = z.url({ protocol: /^https?$/ });

const schema = z.object({
  AWS_REGION: z.string().min(1),
  GLEANER_MODE: z.enum(['observe', 'enforce']).default('observe'),
  GLEANER_POLICY_FILE: z.string().min(1).optional(),
  GLEANER_POLICY: z.string().min(1).optional(),
  GLEANER_REGIONS: z.string().min(1).optional(),
  GLEANER_TABLE: z.string().min(1),
  GLEANER_REAP_QUEUE_URL: url,
  GLEANER_WORK_QUEUE_URL: url,
  GLEANER_DEAD_LETTER_QUEUE_URL: url,
  GLEANER_CLAIMS_QUEUE_URL: url.optional(),
  GLEANER_EVENTS_QUEUE_URL: url.optional(),
  GLEANER_EVENT_BUS: z.string().min(1).default('default'),
  GLEANER_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
});

/** What the deployment sets. */
export interface Environment {
  readonly region: string;
  readonly mode: 'observe' | 'enforce';
  readonly policy: Policy;
  /** Region names, or `['all']`. */
  readonly regions: readonly string[];
  readonly table: string;
  readonly reapQueueUrl: string;
  readonly workQueueUrl: string;
  readonly deadLetterQueueUrl: string;
  /** Where the VM events come from: to put one back for a while. */
  readonly eventQueueUrls: readonly string[];
  readonly eventBus: string;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/**
 * Reads the deployment's settings once, strictly: a wrong deployment fails at its first call, with the variable's name.
 * @param folder  where the bundle lies; policy files are found beside it
 * @throws InputError
 */
export function readEnvironment(env: NodeJS.ProcessEnv, folder: string): Environment {
  const parsed = schema.safeParse(env);
  if (!parsed.success) throw inputError('environment', parsed.error);
  const settings = parsed.data;
  const policy = readPolicy(settings.GLEANER_POLICY, settings.GLEANER_POLICY_FILE, folder);
  return {
    region: settings.AWS_REGION,
    // Both must say enforce: whoever can edit only one of them cannot start deletions.
    mode: policy.mode === 'observe' ? 'observe' : settings.GLEANER_MODE,
    policy,
    regions: (settings.GLEANER_REGIONS ?? settings.AWS_REGION).split(',').map((region) => region.trim()),
    table: settings.GLEANER_TABLE,
    reapQueueUrl: settings.GLEANER_REAP_QUEUE_URL,
    workQueueUrl: settings.GLEANER_WORK_QUEUE_URL,
    deadLetterQueueUrl: settings.GLEANER_DEAD_LETTER_QUEUE_URL,
    eventQueueUrls: [settings.GLEANER_CLAIMS_QUEUE_URL, settings.GLEANER_EVENTS_QUEUE_URL].filter(
      (one) => one !== undefined,
    ),
    eventBus: settings.GLEANER_EVENT_BUS,
    logLevel: settings.GLEANER_LOG_LEVEL,
  };
}

function readPolicy(text: string | undefined, file: string | undefined, folder: string): Policy {
  if (text !== undefined && file !== undefined) {
    throw new InputError('environment.GLEANER_POLICY', 'set either this or GLEANER_POLICY_FILE');
  }
  if (file === undefined) return parsePolicy(text ?? {});
  try {
    return parsePolicy(readFileSync(resolve(folder, file), 'utf8'));
  } catch (error) {
    if (error instanceof InputError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new InputError('environment.GLEANER_POLICY_FILE', message, { cause: error });
  }
}
