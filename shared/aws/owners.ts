import { type EC2Client, type Filter, type Instance, paginateDescribeInstances } from '@aws-sdk/client-ec2';
import type { Attachment, OwnerAnswer, OwnerRef, Vm } from '../core/model.ts';
import { type OwnerDirectory, ownerKey } from '../core/ports.ts';
import { messageOf } from '../core/run.ts';
import { called, chunks, FILTER_VALUES, filter, listOf, PAGE_SIZE, tagsOf } from './describe.ts';
import { isInstanceId, isInstanceName, keyOf } from './ids.ts';

const OPERATION = 'DescribeInstances';

/** EC2 instances, by exact id or by exact Name. */
export class Ec2Owners implements OwnerDirectory {
  readonly #ec2: EC2Client;
  readonly #region: string;

  constructor(ec2: EC2Client, region: string) {
    this.#ec2 = ec2;
    this.#region = region;
  }

  async lookup(refs: readonly OwnerRef[], signal: AbortSignal): Promise<Map<string, OwnerAnswer>> {
    const answers = new Map<string, OwnerAnswer>();
    for (const ref of refs)
      answers.set(ownerKey(ref), refusal(ref, this.#region) ?? { state: 'unknown', detail: 'not asked' });
    const asked = refs.filter((ref) => refusal(ref, this.#region) === undefined);
    const ids = asked.filter(({ by }) => by === 'id');
    const names = asked.filter(({ by }) => by === 'name');
    for (const batch of chunks(ids, FILTER_VALUES)) await this.#answer(batch, 'instance-id', ofId, signal, answers);
    for (const batch of batchesByName(names)) await this.#answer(batch, 'tag:Name', ofName, signal, answers);
    return answers;
  }

  async read({ id }: { readonly id: string; readonly place: string }, signal: AbortSignal): Promise<Vm | undefined> {
    if (!isInstanceId(id)) return undefined;
    const instances = await this.#describe(filter('instance-id', [id.toLowerCase()]), signal);
    const instance = instances.find(({ InstanceId }) => InstanceId === id.toLowerCase());
    return instance && toVm(this.#region, instance);
  }

  /** One batch, one complete answer; a batch that failed leaves every owner of its own unknown. */
  async #answer(
    refs: readonly OwnerRef[],
    filterName: string,
    answerOf: (region: string, ref: OwnerRef, instances: readonly Instance[]) => OwnerAnswer,
    signal: AbortSignal,
    answers: Map<string, OwnerAnswer>,
  ): Promise<void> {
    try {
      const values = [...new Set(refs.map(({ value }) => value))];
      const instances = await this.#describe(filter(filterName, values), signal);
      for (const ref of refs) answers.set(ownerKey(ref), answerOf(this.#region, ref, instances));
    } catch (error) {
      for (const ref of refs) answers.set(ownerKey(ref), { state: 'unknown', detail: messageOf(error) });
    }
  }

  async #describe(wanted: Filter, signal: AbortSignal): Promise<Instance[]> {
    const pages = paginateDescribeInstances(
      { client: this.#ec2, pageSize: PAGE_SIZE },
      { Filters: [wanted] },
      { abortSignal: signal },
    );
    const instances: Instance[] = [];
    for (;;) {
      const page = await called(OPERATION, () => pages.next());
      if (page.done) return instances;
      for (const { Instances } of listOf(page.value.Reservations, OPERATION))
        instances.push(...listOf(Instances, OPERATION));
    }
  }
}

/** What cannot be asked proves nothing: an instance of another region is never in this one's answer. */
function refusal({ by, value, place }: OwnerRef, region: string): OwnerAnswer | undefined {
  if (place !== region) return { state: 'unknown', detail: `is looked up in ${place}, not in ${region}` };
  const askable = by === 'id' ? isInstanceId(value) : isInstanceName(value);
  return askable ? undefined : { state: 'unknown', detail: 'is no instance id and no name that can be looked up' };
}

/** Several refs may share a name, with different cluster tags; a filter takes 200 distinct values. */
function batchesByName(refs: readonly OwnerRef[]): OwnerRef[][] {
  const byName = [...Map.groupBy(refs, ({ value }) => value).values()];
  return chunks(byName, FILTER_VALUES).map((groups) => groups.flat());
}

function ofId(region: string, { value }: OwnerRef, instances: readonly Instance[]): OwnerAnswer {
  const instance = instances.find(({ InstanceId }) => InstanceId === value);
  if (!instance) return { state: 'gone', detail: 'absent from a complete answer', id: value };
  return answer(region, instance);
}

/**
 * By Name. The cluster's tag is not asked for: an instance of that name whose tags are not all there yet must count as well.
 * A name that fits several instances names none of them.
 */
function ofName(region: string, { value }: OwnerRef, instances: readonly Instance[]): OwnerAnswer {
  const named = instances.filter(({ Tags }) => tagsOf(Tags).Name === value);
  const alive = named.find((one) => stateOf(one) !== 'gone');
  const [only] = named;
  if (alive) return { ...answer(region, alive), matches: named.length };
  if (!only) return { state: 'gone', detail: 'absent from a complete answer', name: value };
  if (named.length > 1)
    return { state: 'unknown', detail: `${named.length} instances have this name`, name: value, matches: named.length };
  return answer(region, only);
}

function answer(region: string, instance: Instance): OwnerAnswer {
  const vm = toVm(region, instance);
  const { state, id, name, createdAt } = vm;
  const detail = instance.State?.Name ?? 'no state';
  return { state, detail, id, name, createdAt, ...(state === 'alive' && { vm }) };
}

/** Only `terminated` is gone; `shutting-down` may still hold what is attached, and a state that is missing proves nothing. */
function stateOf({ State }: Instance): Vm['state'] {
  if (State?.Name === 'terminated') return 'gone';
  return State?.Name === undefined ? 'unknown' : 'alive';
}

function toVm(region: string, instance: Instance): Vm {
  const id = instance.InstanceId ?? '';
  const tags = tagsOf(instance.Tags);
  return {
    id,
    key: keyOf(region, id),
    name: tags.Name ?? id,
    place: region,
    tags,
    state: stateOf(instance),
    createdAt: instance.LaunchTime,
    attachments: attachmentsOf(region, instance),
  };
}

function attachmentsOf(region: string, { BlockDeviceMappings = [], NetworkInterfaces = [] }: Instance): Attachment[] {
  const attachment = (id: string, kind: Attachment['kind']): Attachment => ({ key: keyOf(region, id), id, kind });
  const disks = BlockDeviceMappings.flatMap(({ Ebs }) => (Ebs?.VolumeId ? [attachment(Ebs.VolumeId, 'disk')] : []));
  const nics = NetworkInterfaces.flatMap(({ NetworkInterfaceId }) =>
    NetworkInterfaceId ? [attachment(NetworkInterfaceId, 'nic')] : [],
  );
  return [...nics, ...disks];
}
