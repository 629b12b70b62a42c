import { parse as parseYaml, YAMLParseError } from 'yaml';
import { InputError } from './errors.ts';
import { type Policy, parsePolicy } from './policy.ts';

/**
 * Parses a policy file as people write it: YAML, of which JSON is a part. An empty file is the default policy.
 * @throws InputError naming the first field that is wrong, or the place where it is no YAML
 */
export function parsePolicyText(source: string): Policy {
  const raw: unknown = parseText(source) ?? {};
  if (typeof raw !== 'object') throw new InputError('policy', `must be an object, not ${JSON.stringify(raw)}`);
  return parsePolicy(raw as object);
}

function parseText(source: string): unknown {
  try {
    return parseYaml(source, { uniqueKeys: true });
  } catch (error) {
    if (error instanceof YAMLParseError)
      throw new InputError('policy', error.message.split('\n')[0] ?? 'is no YAML', { cause: error });
    throw error;
  }
}
