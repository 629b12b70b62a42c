import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Token } from 'aws-cdk-lib';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Node } from 'constructs';
import { parse as parseYaml } from 'yaml';
import * as z from 'zod';
import { parseDuration } from '../../shared/core/duration.ts';
import { InputError } from '../../shared/core/errors.ts';
import { inputError, type Policy, type PolicyInput, parsePolicy } from '../../shared/core/policy.ts';
import { parsePolicyText } from '../../shared/core/policy-text.ts';

const MINUTE_MS = 60_000;
/** SQS cannot delay a message longer. */
const MAX_DELAY_S = 900;
const RETENTIONS = Object.values(RetentionDays).filter((days): days is RetentionDays => typeof days === 'number');

const orToken = (pattern: RegExp, message: string) =>
  z.string().refine((text) => Token.isUnresolved(text) || pattern.test(text), message);

/** A comma list on the command line, an array in code. */
const list = (item: z.ZodType<string>) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',').map((part) => part.trim()) : value),
    z.array(item).min(1),
  );

const flag = z.preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean());

/** The settings of a deployment, as properties of the construct and, under the same names, as CDK context. */
const settingsSchema = z.strictObject({
  mode: z.enum(['observe', 'enforce']).default('observe'),
  regions: list(z.string().regex(/^(all|[a-z]{2,}(-[a-z]+)+-\d+)$/, 'must be region names, or all')).optional(),
  clusters: list(z.string().regex(/^[\w.-]{1,100}$/, 'must be cluster names')).optional(),
  policy: z.union([z.string().min(1), z.record(z.string(), z.unknown())]).optional(),
  schedule: z.string().default('30m'),
  alarmTopicArn: orToken(/^arn:[\w-]+:sns:[\w-]+:\d{12}:[\w.-]+$/, 'must be the ARN of an SNS topic').optional(),
  alarmEmail: orToken(/^[^@\s]+@[^@\s]+$/, 'must be an e-mail address').optional(),
  retention: z.preprocess(
    (value) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value),
    z
      .number()
      .refine((days) => RETENTIONS.includes(days), `must be a number of days that CloudWatch Logs knows`)
      .default(RetentionDays.THREE_MONTHS),
  ),
  deletionProtection: flag.default(false),
  removal: z.enum(['retain', 'destroy']).default('retain'),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  bundles: z.string().min(1).optional(),
});

/** Names of the settings that `cdk -c name=value` takes. */
export const SETTING_NAMES = Object.keys(settingsSchema.shape);

/** Properties of {@link Gleaner}; all optional. */
export interface GleanerProps {
  /** `observe` (default) decides and records; only in `enforce` do the functions hold the permission to delete. */
  readonly mode?: 'observe' | 'enforce';
  /** Regions that are swept, or `['all']`; default the stack's own. VM events come from the stack's own region only. */
  readonly regions?: readonly string[];
  /** Only resources of these clusters: sets the policy's `clusters`. */
  readonly clusters?: readonly string[];
  /** The policy, or the path of its YAML or JSON file. */
  readonly policy?: string | PolicyInput;
  /** Time from sweep to sweep, a duration from 5m to 12h in whole minutes; default 30m. */
  readonly schedule?: string;
  /** An SNS topic that the alarms are sent to. */
  readonly alarmTopicArn?: string;
  /** Makes a topic of its own for the alarms and subscribes this address. */
  readonly alarmEmail?: string;
  /** Days that logs are kept; default 90. */
  readonly retention?: number;
  /** Whether the ledger's table refuses to be deleted. */
  readonly deletionProtection?: boolean;
  /** What happens to ledger and logs when the stack is deleted; default `retain`. */
  readonly removal?: 'retain' | 'destroy';
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error';
  /** Folder of bundles that are built already (`<folder>/<function>/index.mjs`); by default they are built at synthesis. */
  readonly bundles?: string;
}

/** Settings, checked, with the policy read. */
export interface Settings {
  readonly mode: 'observe' | 'enforce';
  readonly regions: readonly string[] | undefined;
  readonly policy: Policy;
  /** The same policy as people write it, for the functions' asset. */
  readonly policyInput: object;
  readonly scheduleMinutes: number;
  readonly settleS: number;
  readonly alarmTopicArn: string | undefined;
  readonly alarmEmail: string | undefined;
  readonly retention: RetentionDays;
  readonly deletionProtection: boolean;
  readonly removal: 'retain' | 'destroy';
  readonly logLevel: string;
  readonly bundles: string | undefined;
}

/**
 * Checks the properties and reads the policy.
 * @throws InputError naming the property
 */
export function readSettings(props: GleanerProps): Settings {
  const parsed = settingsSchema.safeParse(props);
  if (!parsed.success) throw inputError('props', parsed.error);
  const { policy: given, clusters, schedule, regions, ...rest } = parsed.data;
  if (regions && regions.length > 1 && regions.includes('all')) {
    throw new InputError('props.regions', 'all stands alone');
  }
  if (rest.alarmTopicArn !== undefined && rest.alarmEmail !== undefined) {
    throw new InputError('props.alarmEmail', 'set either this or alarmTopicArn');
  }
  const policyInput = withClusters(readPolicyInput(given), clusters);
  const policy = parsePolicy(policyInput);
  if (rest.mode === 'enforce' && policy.mode === 'observe') {
    throw new InputError('props.mode', 'is enforce, but the policy says observe');
  }
  return {
    ...rest,
    regions,
    policy,
    policyInput,
    scheduleMinutes: minutesOf(schedule),
    settleS: settleOf(policy),
    alarmTopicArn: rest.alarmTopicArn,
    alarmEmail: rest.alarmEmail,
    bundles: rest.bundles,
  };
}

/**
 * The properties that CDK context carries. A key that looks like a setting and is none fails: a misspelt one must not
 * mean its default.
 * @throws InputError naming the key
 */
export function propsFromContext(node: Node): GleanerProps {
  const context = node.getAllContext() as Record<string, unknown>;
  // CDK's own keys have a dash, a colon or a slash in them; ours are plain words.
  const words = Object.entries(context).filter(([key]) => /^[a-z][A-Za-z]*$/.test(key));
  const unknown = words.find(([key]) => !SETTING_NAMES.includes(key));
  if (unknown) throw new InputError(`context.${unknown[0]}`, `unknown setting: one of ${SETTING_NAMES.join(', ')}`);
  const parsed = settingsSchema.partial().safeParse(Object.fromEntries(words));
  if (!parsed.success) throw inputError('context', parsed.error);
  return Object.fromEntries(words) as GleanerProps;
}

function readPolicyInput(given: string | object | undefined): object {
  if (typeof given === 'object') return given;
  if (given === undefined) return {};
  let text: string;
  try {
    text = readFileSync(resolve(given), 'utf8');
  } catch (error) {
    throw new InputError('props.policy', error instanceof Error ? error.message : String(error), { cause: error });
  }
  parsePolicyText(text);
  return (parseYaml(text) as object | null) ?? {};
}

function withClusters(input: object, clusters: readonly string[] | undefined): object {
  if (!clusters) return input;
  if ('clusters' in input) throw new InputError('props.clusters', 'the policy sets clusters as well: set one of them');
  return { ...input, clusters };
}

function minutesOf(schedule: string): number {
  const minutes = (parseDuration(schedule) ?? Number.NaN) / MINUTE_MS;
  if (!Number.isInteger(minutes) || minutes < 5 || minutes > 720) {
    throw new InputError('props.schedule', 'must be a duration of whole minutes from 5m to 12h');
  }
  return minutes;
}

function settleOf(policy: Policy): number {
  const seconds = Math.ceil(policy.settle / 1000);
  if (seconds > MAX_DELAY_S) throw new InputError('policy.settle', 'must be at most 15m: SQS delays no longer');
  return seconds;
}
