import { parse as parseYaml } from 'yaml';
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
    return parseYaml(source, { uniqueKeys: true, logLevel: 'error' });
  } catch (cause) {
    const [message = 'is no YAML'] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
    // YAML reads a value that begins with * as an alias: what people mean by it here is a name.
    const hint = message.includes('alias') ? ' (a value that begins with * needs quotes)' : '';
    throw new InputError('policy', `${message}${hint}`, { cause });
  }
}
