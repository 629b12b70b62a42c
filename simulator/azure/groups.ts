import type { Answer } from '../http.ts';
import { type ArmError, armErrors } from './errors.ts';
import { groupOf } from './estate.ts';
import type { OperationNames, Operations } from './operations.ts';
import { type Body, type DiskBody, LOCATION, type NicBody, TYPES } from './shapes.ts';
import type { Subscription } from './subscription.ts';

/** The group's name as it was made. @throws ArmError where there is none */
export function needGroup(one: Subscription, name: string): string {
  const known = one.groupNamed(name);
  if (known === undefined) throw armErrors.groupNotFound(name);
  return known;
}

/** A group as ARM answers it. @throws ArmError */
export function groupBody(one: Subscription, name: string) {
  const known = needGroup(one, name);
  return {
    id: one.groupId(known),
    name: known,
    type: 'Microsoft.Resources/resourceGroups',
    location: LOCATION,
    properties: { provisioningState: 'Succeeded' },
  };
}

/** Deletes a group with its VMs and all that they hold, unless something blocks it; that shows only at the operation's end. */
export function removeGroup(
  one: Subscription,
  group: string,
  origin: string,
  names: OperationNames,
  operations: Operations,
): Answer {
  const known = needGroup(one, group);
  const base = `${origin}/subscriptions/${one.id}`;
  return operations.begin(base, names, one.pace.group, () => {
    const blocked = blockedBy(one, known);
    if (blocked) throw blocked;
    one.removeGroup(known);
  });
}

/**
 * What nobody in the group holds any more, and what somebody outside holds, blocks it, as such leftovers do wherever
 * their subnet or their reservation keeps them; and so do NICs of other groups in a subnet of this one.
 */
function blockedBy(one: Subscription, group: string): ArmError | undefined {
  const inGroup = (id: string | undefined) => id !== undefined && groupOf(id) === group.toLowerCase();
  const all = [...one.all()];
  const left = all.filter((body) => inGroup(body.id) && isHeld(body) && !inGroup(holderOf(body)));
  if (left.length > 0)
    return armErrors.groupBlocked(
      group,
      left.map(({ id }) => id),
    );
  for (const body of all) {
    if (body.type !== TYPES.nic || inGroup(body.id)) continue;
    const configuration = (body as NicBody).properties.ipConfigurations.find(({ properties }) =>
      inGroup(properties.subnet?.id),
    );
    const subnet = configuration?.properties.subnet?.id;
    if (subnet !== undefined)
      return armErrors.subnetInUse(subnet, `${body.id}/ipConfigurations/${configuration?.name}`);
  }
  return undefined;
}

const isHeld = ({ type }: Body) => type === TYPES.nic || type === TYPES.disk;

function holderOf(body: Body): string | undefined {
  return body.type === TYPES.nic ? (body as NicBody).properties.virtualMachine?.id : (body as DiskBody).managedBy;
}
