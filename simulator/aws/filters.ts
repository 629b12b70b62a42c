import type { Tag } from '@aws-sdk/client-ec2';
import { Ec2Error } from './errors.ts';

export interface Filter {
  readonly name: string;
  readonly values: readonly string[];
}

/** What a filter's name stands for: the values that one row has under it. */
export type Fields<T> = Readonly<Record<string, (row: T) => readonly (string | undefined)[]>>;

const MAX_VALUES = 200;

/**
 * Filters are ANDed, a filter's values ORed, `*` and `?` are wildcards. A name that EC2 does not know, or more than 200
 * values in all, is an error as it is there.
 */
export function matcher<T>(
  filters: readonly Filter[],
  fields: Fields<T>,
  tagsOf: (row: T) => readonly Tag[],
): (row: T) => boolean {
  const count = filters.reduce((sum, { values }) => sum + values.length, 0);
  if (count > MAX_VALUES)
    throw new Ec2Error(
      'FilterLimitExceeded',
      `The maximum number of filter values specified on a single call is ${MAX_VALUES}`,
    );
  const tests = filters.map(({ name, values }) => {
    if (values.length === 0) throw new Ec2Error('InvalidParameterValue', `The filter '${name}' has no values`);
    const matches = valueMatcher(values);
    const read = readerOf(name, fields, tagsOf);
    return (row: T) => read(row).some((value) => value !== undefined && matches(value));
  });
  return (row) => tests.every((test) => test(row));
}

function readerOf<T>(name: string, fields: Fields<T>, tagsOf: (row: T) => readonly Tag[]) {
  if (name.startsWith('tag:')) {
    const key = name.slice('tag:'.length);
    return (row: T) => tagsOf(row).flatMap((tag) => (tag.Key === key ? [tag.Value ?? ''] : []));
  }
  if (name === 'tag-key') return (row: T) => tagsOf(row).map(({ Key }) => Key);
  const field = fields[name];
  if (!field) throw new Ec2Error('InvalidParameterValue', `The filter '${name}' is invalid`);
  return field;
}

const WILD = /[*?\\]/;

function valueMatcher(values: readonly string[]): (value: string) => boolean {
  const exact = new Set(values.filter((value) => !WILD.test(value)));
  const patterns = values.filter((value) => WILD.test(value)).map(toPattern);
  return (value) => exact.has(value) || patterns.some((pattern) => pattern.test(value));
}

/** `*` is any text, `?` one character, and a backslash before either (or before itself) means the character. */
function toPattern(glob: string): RegExp {
  const source = glob.replaceAll(/\\[*?\\]|[.+^${}()|[\]\\*?]/g, (found) => {
    if (found === '*') return '[^]*';
    if (found === '?') return '[^]';
    return found.length === 2 ? found : `\\${found}`;
  });
  return new RegExp(`^${source}$`);
}

/** Values of the one filter by id, each once, if there is one: rows are then found, not searched. */
export function idsAmong(filters: readonly Filter[], name: string): readonly string[] | undefined {
  const byId = filters.find((filter) => filter.name === name);
  return !byId || byId.values.some((value) => WILD.test(value)) ? undefined : [...new Set(byId.values)];
}
