import type { Resource } from './model.ts';

type Tagged = Pick<Resource, 'tags' | 'tagsIgnoreCase'>;

/** Text of a tag as the cloud compares it: without its case where the cloud does so. */
export const folded = (resource: Pick<Tagged, 'tagsIgnoreCase'>, text: string) =>
  resource.tagsIgnoreCase ? text.toLowerCase() : text;

/** The tags under any of `keys`, in the cloud's own spelling. Keys are compared without case only where the cloud does so. */
export function tagEntries(resource: Tagged, keys: readonly string[]): [key: string, value: string][] {
  const wanted = new Set(keys.map((key) => folded(resource, key)));
  return Object.entries(resource.tags).filter(([key]) => wanted.has(folded(resource, key)));
}

/** The value of a tag; undefined where there is none. */
export function tag(resource: Tagged, key: string): string | undefined {
  return tagEntries(resource, [key])[0]?.[1];
}

export function hasTag(resource: Tagged, key: string): boolean {
  return tag(resource, key) !== undefined;
}

/** Keys that start with `prefix`, in the cloud's own spelling. */
export function tagKeysWithPrefix(resource: Tagged, prefix: string): string[] {
  return Object.keys(resource.tags).filter((key) => folded(resource, key).startsWith(folded(resource, prefix)));
}
