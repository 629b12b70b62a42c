import type { Attribution, Resource } from '../../core/model.ts';
import { isVmName } from '../arm-id.ts';

/** VMs named in the resource's own group, each once, in one spelling: names have no case on Azure. */
export function named(
  resource: Resource,
  evidence: string,
  clusterTag: string,
  detail: string,
  owners: readonly string[],
): Attribution[] {
  const names = [...new Set(owners.map((owner) => owner.toLowerCase()))].filter(isVmName);
  return names.map((value) => ({
    ref: { by: 'name', value, place: resource.place, clusterTag },
    evidence,
    detail: `${detail}, name ${resource.name}`,
  }));
}

/** What the pattern's first group finds in a name. */
export function capture(pattern: RegExp, name: string): string[] {
  const found = pattern.exec(name)?.[1];
  return found === undefined ? [] : [found];
}

/** The text, and everything that remains of it when it is cut at a separator, longest first. */
export function prefixes(text: string, separator: string): string[] {
  const parts = text.split(separator);
  return parts.map((_, index) => parts.slice(0, parts.length - index).join(separator)).filter((part) => part !== '');
}
