import type { Filter, Tag } from '@aws-sdk/client-ec2';
import { CloudError } from '../core/errors.ts';
import type { Resource } from '../core/model.ts';
import { toCloudError } from './errors.ts';

/** EC2 takes 200 filter values a call, of all filters together (`FilterLimitExceeded`). */
export const FILTER_VALUES = 200;
export const PAGE_SIZE = 1000;

export const filter = (Name: string, Values: readonly string[]): Filter => ({ Name, Values: [...Values] });

export function tagsOf(tags: readonly Tag[] | undefined): Record<string, string> {
  return Object.fromEntries((tags ?? []).flatMap(({ Key, Value }) => (Key === undefined ? [] : [[Key, Value ?? '']])));
}

/**
 * The list of an answer. EC2 sends an empty element for an empty list; where the element is missing, the answer is not what
 * was asked for (cut off, or from something in between), and proves nothing.
 */
export function listOf<T>(list: readonly T[] | undefined, operation: string): readonly T[] {
  if (list !== undefined) return list;
  throw incomplete(operation, 'the answer has no list');
}

interface Page {
  readonly NextToken?: string | undefined;
}

/**
 * The pages of a listing to their end. A token that comes back as it was sent leads nowhere: that listing has no end, and
 * stopping there would pass for a complete answer.
 * @throws CloudError
 */
export async function* pagesOf<P extends Page>(operation: string, pages: AsyncIterator<P>): AsyncGenerator<P> {
  const tokens = new Set<string>();
  for (;;) {
    const page = await called(operation, () => pages.next());
    if (page.done) return;
    const { NextToken } = page.value;
    if (NextToken && tokens.has(NextToken)) throw incomplete(operation, 'the answer leads back to itself');
    if (NextToken) tokens.add(NextToken);
    yield page.value;
  }
}

/** An answer that is no proof of anything. */
export function incomplete(operation: string, message: string, nativeCode = 'IncompleteAnswer'): CloudError {
  return new CloudError({ code: 'unavailable', nativeCode, operation, message });
}

/** Runs a call and lets nothing of the SDK's errors out. */
export async function called<T>(operation: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw toCloudError(error, operation);
  }
}

/** Each resource once; one that two reads found is the same. */
export function distinct(resources: readonly Resource[]): Resource[] {
  return [...new Map(resources.map((resource) => [resource.key, resource])).values()];
}
