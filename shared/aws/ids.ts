import type { OwnerRef, Resource } from '../core/model.ts';
import type { ResourceId } from '../core/ports.ts';

const HEX = '(?:[0-9a-f]{8}|[0-9a-f]{17})';
const INSTANCE_ID = new RegExp(`^i-${HEX}$`, 'i');
const VOLUME_ID = new RegExp(`^vol-${HEX}$`, 'i');
const ENI_ID = new RegExp(`^eni-${HEX}$`, 'i');

export const VOLUME_TYPE = 'ebs-volume';
export const ENI_TYPE = 'ec2-network-interface';

export function isInstanceId(text: string | undefined): text is string {
  return text !== undefined && INSTANCE_ID.test(text);
}

/**
 * A Name tag that can be looked up. EC2 reads `*`, `?` and `\` in a filter's value as wildcards, so a name with one of them
 * could find other VMs than its own and is not looked up at all.
 */
export function isInstanceName(text: string | undefined): text is string {
  return (
    text !== undefined && text.trim() === text && text.length > 0 && text.length <= 256 && !/[*?\\\p{Cc}]/u.test(text)
  );
}

const SPEAKS_OF_ID = /^arn:|(^|[^a-z0-9-])i-[0-9a-f]{8}/i;

/** `i-…` is an id, what begins so but is none cannot be parsed, everything else is a Name. */
export function parseOwnerTag(value: string, { place }: Pick<Resource, 'place'>): OwnerRef | undefined {
  if (isInstanceId(value)) return { by: 'id', value: value.toLowerCase(), place };
  // An id with something around it (an ARN, a list, an account before it) is no name: looked up as one, nothing would have it.
  if (/^i-[0-9a-f]*$/i.test(value) || SPEAKS_OF_ID.test(value) || !isInstanceName(value)) return undefined;
  return { by: 'name', value, place };
}

/** Native ids say what they are; they are compared in lower case. */
export function identify(region: string, text: string): ResourceId | undefined {
  const id = text.trim().toLowerCase();
  if (VOLUME_ID.test(id)) return { key: keyOf(region, id), id, type: VOLUME_TYPE };
  if (ENI_ID.test(id)) return { key: keyOf(region, id), id, type: ENI_TYPE };
  return undefined;
}

export const keyOf = (region: string, id: string) => `aws:${region}:${id}`;
