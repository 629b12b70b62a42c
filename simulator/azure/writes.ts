import type { Answer } from '../http.ts';
import { ArmError, armErrors } from './errors.ts';
import type { OperationNames, Operations } from './operations.ts';
import { armTime, type DiskBody, LOCATION, type SnapshotBody, TYPES, type Wire } from './shapes.ts';
import type { Subscription } from './subscription.ts';

/** A PUT of a disk or snapshot, its body not parsed yet. */
export interface PutRequest {
  readonly group: string;
  readonly name: string;
  readonly body: string;
  /** URL up to `…/locations/<l>`. */
  readonly base: string;
}

type Asked = Partial<Pick<DiskBody, 'location' | 'sku' | 'zones' | 'tags'>> & {
  readonly properties?: Partial<DiskBody['properties']> & { readonly incremental?: boolean };
};
/** The data that a disk or snapshot begins with. */
interface Origin {
  readonly diskSizeGB: number;
  readonly of: DiskBody | SnapshotBody | undefined;
}

/**
 * Makes a disk, empty or as a copy of a snapshot or disk, or a snapshot of a disk. It reads `Updating` until the
 * operation is done. What exists under the name is not made anew: as at Azure, only its tags, and its size upwards, change.
 * @throws ArmError
 */
export function write(
  one: Subscription,
  kind: 'disk' | 'snapshot',
  request: PutRequest,
  names: OperationNames,
  operations: Operations,
): Answer {
  const asked = parse(request.body);
  const id = `${one.groupId(request.group)}/providers/${TYPES[kind]}/${request.name}`;
  const existing = one.get(id) as DiskBody | SnapshotBody | undefined;
  const made = existing ? changed(existing, asked) : created(one, kind, request, id, asked);
  const state = (provisioningState: string) => {
    const now = (one.get(id) ?? made) as DiskBody | SnapshotBody;
    return one.put({ ...now, properties: { ...now.properties, provisioningState } } as DiskBody | SnapshotBody);
  };
  one.put(made);
  state('Updating');
  const finish = () => {
    const failure = one.failAtEnd.get(id.toLowerCase());
    state(failure ? 'Failed' : 'Succeeded');
    if (failure) throw new ArmError(409, failure.code, failure.message);
  };
  const accepted = JSON.stringify(one.get(id));
  const answer = operations.begin(request.base, names, one.pace.disk, finish, () => one.get(id));
  return { ...answer, body: accepted };
}

function created(
  one: Subscription,
  kind: 'disk' | 'snapshot',
  { name }: PutRequest,
  id: string,
  asked: Asked,
): DiskBody | SnapshotBody {
  if (asked.location === undefined)
    throw new ArmError(400, 'LocationRequired', 'The location property is required for this definition.');
  const { of, diskSizeGB } = originOf(one, kind, asked);
  const { osType, hyperVGeneration, ...properties } = asked.properties ?? {};
  const creationData = {
    ...properties.creationData,
    ...(of && { sourceUniqueId: of.properties.uniqueId }),
  } as DiskBody['properties']['creationData'];
  const inherited = {
    osType: osType ?? of?.properties.osType,
    hyperVGeneration: hyperVGeneration ?? of?.properties.hyperVGeneration,
  };
  return {
    id,
    name,
    type: TYPES[kind],
    location: asked.location || LOCATION,
    tags: asked.tags ?? {},
    ...(asked.zones && { zones: asked.zones }),
    sku: asked.sku ?? { name: kind === 'disk' ? 'Premium_LRS' : 'Standard_LRS' },
    properties: {
      ...properties,
      ...(inherited.osType && { osType: inherited.osType }),
      ...(inherited.hyperVGeneration && { hyperVGeneration: inherited.hyperVGeneration }),
      creationData,
      diskSizeGB,
      diskState: 'Unattached',
      timeCreated: armTime(one.world.clock.now()),
      uniqueId: one.uniqueId(),
    },
  } as DiskBody | SnapshotBody;
}

function originOf(one: Subscription, kind: 'disk' | 'snapshot', { properties }: Asked): Origin {
  const { createOption, sourceResourceId } = properties?.creationData ?? {};
  if (createOption === 'Empty' && kind === 'disk') {
    if (properties?.diskSizeGB === undefined)
      throw armErrors.invalidParameter('disk.properties.diskSizeGB', 'Required parameter is missing (null).');
    return { diskSizeGB: properties.diskSizeGB, of: undefined };
  }
  if (createOption !== 'Copy' || sourceResourceId === undefined)
    throw armErrors.invalidParameter('creationData.createOption', `'${createOption}' is not simulated for a ${kind}.`);
  const of = one.get(sourceResourceId) as DiskBody | SnapshotBody | undefined;
  if (of?.type !== TYPES.disk && (of?.type !== TYPES.snapshot || kind === 'snapshot'))
    throw armErrors.noSource(sourceResourceId);
  if (of.properties.provisioningState !== 'Succeeded') throw armErrors.sourceNotReady(of.name);
  const { diskSizeGB = 0 } = of.properties;
  const wanted = properties?.diskSizeGB ?? diskSizeGB;
  if (wanted < diskSizeGB)
    throw armErrors.invalidParameter('disk.properties.diskSizeGB', `The source has ${diskSizeGB} GB.`);
  return { diskSizeGB: wanted, of };
}

function changed(existing: DiskBody | SnapshotBody, asked: Asked): DiskBody | SnapshotBody {
  const { diskSizeGB = 0 } = existing.properties;
  const wanted = asked.properties?.diskSizeGB ?? diskSizeGB;
  if (wanted < diskSizeGB)
    throw armErrors.invalidParameter('disk.properties.diskSizeGB', `It has ${diskSizeGB} GB and cannot shrink.`);
  const properties = { ...existing.properties, diskSizeGB: wanted } as Wire<DiskBody['properties']>;
  return { ...existing, tags: asked.tags ?? {}, properties } as DiskBody | SnapshotBody;
}

function parse(body: string): Asked {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Falls through to the refusal.
  }
  throw new ArmError(400, 'InvalidRequestContent', 'The request content was invalid and could not be deserialized.');
}
