import { type EC2Client, type Filter, type Instance, paginateDescribeInstances } from '@aws-sdk/client-ec2';
import { chunks } from '../core/chunks.ts';
import type { Attachment, OwnerAnswer, OwnerRef, Vm } from '../core/model.ts';
import { type OwnerDirectory, ownerKey } from '../core/ports.ts';
import { messageOf } from '../core/run.ts';
import { tagKeysWithPrefix } from '../core/tags.ts';
import { FILTER_VALUES, filter, incomplete, listOf, PAGE_SIZE, pagesOf, tagsOf } from './describe.ts';
import { isInstanceId, isInstanceName, keyOf } from './ids.ts';
import { CANDIDATE_TAG_PREFIXES, CAPA_CLUSTER_TAG_PREFIX, MACHINE_NAME_TAG } from './tags.ts';

const OPERATION = 'DescribeInstances';
const ABSENT = 'absent from a complete answer';
const NOT_ASKED: OwnerAnswer = { state: 'unknown', detail: 'not asked' };

/** EC2 instances, by exact id or by exact Name. */
export class Ec2Owners implements OwnerDirectory {
  readonly #ec2: EC2Client;
  readonly #region: string;
  /** Owners that {@link read} has just found gone: no id is ever used again, so the look-up that follows need not ask anew. */
  readonly #gone = new Map<string, OwnerAnswer>();

  constructor(ec2: EC2Client, region: string) {
    this.#ec2 = ec2;
    this.#region = region;
  }

  async lookup(refs: readonly OwnerRef[], signal: AbortSignal): Promise<Map<string, OwnerAnswer>> {
    const answers = new Map<string, OwnerAnswer>();
    for (const ref of refs) answers.set(ownerKey(ref), this.#unasked(ref) ?? NOT_ASKED);
    const asked = refs.filter((ref) => answers.get(ownerKey(ref)) === NOT_ASKED);
    const ask = async (question: Question, about: readonly OwnerRef[]) => {
      for (const batch of batchesOf(question, about)) await this.#answer(question, batch, signal, answers);
    };
    await ask(
      BY_ID,
      asked.filter(({ by }) => by === 'id'),
    );
    const names = asked.filter(({ by }) => by === 'name');
    await ask(BY_NAME, names);
    // An instance of Cluster API's may be called otherwise than its Machine.
    const isGone = (ref: OwnerRef) => answers.get(ownerKey(ref))?.state === 'gone';
    await ask(
      BY_MACHINE,
      names.filter((ref) => ref.clusterTag?.startsWith(CAPA_CLUSTER_TAG_PREFIX) && isGone(ref)),
    );
    return answers;
  }

  /** By id; a name that a person gave is read where exactly one instance has it. */
  async read({ id }: { readonly id: string; readonly place: string }, signal: AbortSignal): Promise<Vm | undefined> {
    if (!isInstanceId(id)) return this.#readByName(id, signal);
    const wanted = id.toLowerCase();
    const ref: OwnerRef = { by: 'id', value: wanted, place: this.#region };
    const instances = await this.#describe(filter(BY_ID.filter, [wanted]), signal);
    const instance = instances.find(({ InstanceId }) => InstanceId === wanted);
    const found = ofId(this.#region, ref, instances);
    if (found.state === 'gone') this.#gone.set(ownerKey(ref), found);
    return instance && toVm(this.#region, instance);
  }

  async #readByName(name: string, signal: AbortSignal): Promise<Vm | undefined> {
    if (!isInstanceName(name)) return undefined;
    const instances = await this.#describe(filter(BY_NAME.filter, [name]), signal);
    const [only, ...others] = instances.filter(({ Tags }) => tagsOf(Tags).Name === name);
    return only && others.length === 0 ? toVm(this.#region, only) : undefined;
  }

  /** What needs no question, or cannot be asked and so proves nothing: an instance of another region is never in this one's answer. */
  #unasked(ref: OwnerRef): OwnerAnswer | undefined {
    const { by, value, place } = ref;
    if (place !== this.#region) return { state: 'unknown', detail: `is looked up in ${place}, not in ${this.#region}` };
    const askable = by === 'id' ? isInstanceId(value) : isInstanceName(value);
    if (!askable) return { state: 'unknown', detail: 'is no instance id and no name that can be looked up' };
    return this.#gone.get(ownerKey(ref));
  }

  /** One batch, one complete answer; a batch that failed leaves every owner of its own unknown. */
  async #answer(
    question: Question,
    refs: readonly OwnerRef[],
    signal: AbortSignal,
    answers: Map<string, OwnerAnswer>,
  ): Promise<void> {
    try {
      const values = [...new Set(refs.map(question.value))];
      const instances = await this.#describe(filter(question.filter, values), signal);
      for (const ref of refs) answers.set(ownerKey(ref), question.answer(this.#region, ref, instances));
    } catch (error) {
      for (const ref of refs) answers.set(ownerKey(ref), { state: 'unknown', detail: messageOf(error) });
    }
  }

  async #describe(wanted: Filter, signal: AbortSignal): Promise<Instance[]> {
    const pages = paginateDescribeInstances(
      { client: this.#ec2, pageSize: PAGE_SIZE },
      // Instances that a service manages (EKS Auto Mode) may be hidden: what is not shown would pass for gone.
      { Filters: [wanted], IncludeManagedResources: true },
      { abortSignal: signal },
    );
    const instances: Instance[] = [];
    for await (const { Reservations } of pagesOf(OPERATION, pages)) {
      for (const { Instances } of listOf(Reservations, OPERATION)) {
        const some = listOf(Instances, OPERATION);
        if (some.length === 0) throw incomplete(OPERATION, 'a reservation without instances');
        instances.push(...some);
      }
    }
    return instances;
  }
}

/** One way to ask: what is sent as the filter, and how the answer is read for one owner. */
interface Question {
  readonly filter: string;
  readonly value: (ref: OwnerRef) => string;
  readonly answer: (region: string, ref: OwnerRef, instances: readonly Instance[]) => OwnerAnswer;
}

/** Ids are written in lower case; names have a case. */
const BY_ID: Question = { filter: 'instance-id', value: ({ value }) => value.toLowerCase(), answer: ofId };
const BY_NAME: Question = { filter: 'tag:Name', value: ({ value }) => value, answer: ofName((tags) => tags.Name) };
/** `namespace/name`, of which only the name is known; the wildcard is EC2's. */
const BY_MACHINE: Question = {
  filter: `tag:${MACHINE_NAME_TAG}`,
  value: ({ value }) => `*/${value}`,
  answer: ofName((tags) => tags[MACHINE_NAME_TAG]?.split('/').at(-1)),
};

/** Several refs may share a value, with different cluster tags; a filter takes 200 distinct values. */
function batchesOf(question: Question, refs: readonly OwnerRef[]): OwnerRef[][] {
  const byValue = [...Map.groupBy(refs, question.value).values()];
  return chunks(byValue, FILTER_VALUES).map((groups) => groups.flat());
}

function ofId(region: string, ref: OwnerRef, instances: readonly Instance[]): OwnerAnswer {
  const id = ref.value.toLowerCase();
  const instance = instances.find(({ InstanceId }) => InstanceId === id);
  if (!instance) return { state: 'gone', detail: ABSENT, id };
  return answer(region, instance);
}

/** A name that fits several instances names none of them, but one that lives keeps whatever the others do. */
function ofName(nameOf: (tags: Readonly<Record<string, string>>) => string | undefined): Question['answer'] {
  return (region, { value, clusterTag }, instances) => {
    const named = instances.filter((one) => nameOf(tagsOf(one.Tags)) === value && !isOfOtherCluster(one, clusterTag));
    const alive = named.find((one) => stateOf(one) !== 'gone');
    const [only] = named;
    if (alive) return { ...answer(region, alive), matches: named.length };
    if (!only) return { state: 'gone', detail: ABSENT, name: value };
    if (named.length === 1) return answer(region, only);
    const detail = `${named.length} instances have this name`;
    return { state: 'unknown', detail, name: value, matches: named.length };
  };
}

/**
 * Only an instance that names another cluster under the same kind of key is another machine of the same name. One that
 * names none may be the owner, whose tags are not all there yet.
 */
function isOfOtherCluster({ Tags }: Instance, clusterTag: string | undefined): boolean {
  const prefix = CANDIDATE_TAG_PREFIXES.find((one) => clusterTag?.startsWith(one));
  if (clusterTag === undefined || prefix === undefined) return false;
  const tags = tagsOf(Tags);
  return tags[clusterTag] === undefined && tagKeysWithPrefix({ tags }, prefix).length > 0;
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
