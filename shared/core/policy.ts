import * as z from 'zod';
import { parseDuration } from './duration.ts';
import { InputError } from './errors.ts';

const DURATION_PATTERN = /^(0|(\d+(ms|s|m|h|d))+)$/;

const NO_DURATION = 'must be a duration such as 90s, 30m, 1h30m or 0, at most 3650d';

/** Zero may be written as a number too, as YAML makes one of it; any other number lacks its unit. */
const duration = (byDefault: string, description: string) =>
  z
    .union([z.string().regex(DURATION_PATTERN, NO_DURATION), z.literal(0)], { error: NO_DURATION })
    .default(byDefault)
    .describe(`${description} A duration: 90s, 30m, 1h30m, 7d, 0.`)
    .transform((value, context) => {
      const ms = parseDuration(String(value));
      if (ms !== undefined) return ms;
      context.addIssue({ code: 'custom', message: NO_DURATION });
      return z.NEVER;
    });

const count = (byDefault: number, description: string) => z.int().min(0).default(byDefault).describe(description);

const text = z.string().trim().min(1, 'must not be empty');
const tagKey = text.max(512);

const exclusion = z
  .strictObject({
    id: text.optional().describe('A native id, compared without case.'),
    name: text.optional().describe('A name; * stands for any characters.'),
    tag: tagKey.optional().describe('A tag key; with `value` only that value.'),
    value: z.string().optional().describe('Together with `tag`.'),
  })
  .refine((rule) => [rule.id, rule.name, rule.tag].filter((part) => part !== undefined).length === 1, {
    message: 'must have exactly one of id, name, tag',
  })
  .refine((rule) => rule.value === undefined || rule.tag !== undefined, { message: 'value goes with tag' });

/** The one schema of the policy file. Unknown keys fail, since a misspelt exclusion must not mean unprotected. */
const policySchema = z
  .strictObject({
    version: z.literal(1).default(1).describe('Version of this format.'),
    mode: z
      .enum(['observe', 'enforce'])
      .optional()
      .describe(
        'observe decides and records, enforce deletes. A deployment in observe stays in observe whatever this says.',
      ),
    grace: duration('30m', 'Time between detach or first sighting as an orphan and the earliest deletion.'),
    minAge: duration('10m', 'Nothing younger than this is deleted.'),
    settle: duration(
      '5m',
      'Time between a VM-deleted event and the first look, and between two looks where one is no proof.',
    ),
    budget: z
      .strictObject({
        perRun: count(200, 'Deletions a run.'),
        perHour: count(1000, 'Deletions an hour, all runs together.'),
      })
      .prefault({}),
    breaker: z
      .strictObject({
        share: z.number().gt(0).max(1).default(0.5).describe('Share of the owners known alive that are gone at once.'),
        min: z.int().min(1).default(20).describe('And at least so many of them.'),
        hold: duration('24h', 'How long a tripped breaker holds unless a person releases it.'),
      })
      .prefault({}),
    snapshot: z
      .enum(['never', 'before-delete'])
      .default('never')
      .describe(
        'before-delete: a disk is deleted only after a snapshot of it has completed. AWS only; refused on Azure.',
      ),
    kinds: z
      .array(z.enum(['disk', 'nic']))
      .min(1)
      .default(['disk', 'nic'])
      .describe('What is looked at.'),
    clusters: z
      .array(text)
      .default([])
      .describe('Only resources of these clusters; empty = all. A call can name one of them, and no other.'),
    ownerTags: z.array(tagKey).min(1).default(['gleaner-owner']).describe('Tag keys whose value names the owner.'),
    optOutTags: z
      .array(tagKey)
      .min(1)
      .default(['gleaner-keep'])
      .describe('Tag keys that protect a resource, whatever their value, unless it is `false`.'),
    exclude: z
      .array(exclusion)
      .default([])
      .describe('Never deleted. Names, tag keys and values are compared in any case.'),
    retention: duration('90d', 'How long the ledger keeps the record of a deletion; at least a day.').refine(
      (ms) => ms >= 86_400_000,
      'must be at least 1d: a record that is gone at once is none',
    ),
  })
  .describe('Gleaner policy');

/** A parsed policy; every duration in milliseconds. */
export type Policy = z.output<typeof policySchema>;
/** A policy as written; every duration a string. */
export type PolicyInput = z.input<typeof policySchema>;

/**
 * Parses a policy: an object, or JSON text, which is what deployments carry. People write YAML: see policy-text.ts, which is
 * apart so that the functions need no YAML parser. An empty object is the default policy.
 * @throws InputError naming the first field that is wrong
 */
export function parsePolicy(input: string | object): Policy {
  const result = policySchema.safeParse(typeof input === 'string' ? parseJson(input) : input);
  if (result.success) return result.data;
  throw inputError('policy', result.error);
}

/** The first issue of a zod error as an InputError that names the field under `root`. */
export function inputError(root: string, error: z.ZodError): InputError {
  const issue = error.issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [root, ...(issue?.path ?? []), ...unknown].join('.');
  return new InputError(field, unknown.length > 0 ? 'unknown key' : (issue?.message ?? 'invalid'));
}

function parseJson(source: string): unknown {
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new InputError('policy', 'is no JSON', { cause: error });
  }
}

/** JSON Schema (draft 2020-12) of the policy file as people write it. */
export function policyJsonSchema(): object {
  return z.toJSONSchema(policySchema, { io: 'input' });
}
