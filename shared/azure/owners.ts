import type { VirtualMachine } from '@azure/arm-compute';
import pMap from 'p-map';
import { CloudError } from '../core/errors.ts';
import type { Attachment, OwnerAnswer, OwnerRef, Resource, Vm } from '../core/model.ts';
import { type OwnerDirectory, ownerKey } from '../core/ports.ts';
import { type ArmId, isVmName, parseArmIdOf, VM_TYPE, vmIdOf } from './arm-id.ts';
import type { ArmClients } from './clients.ts';
import { isGone, malformed, toCloudError } from './errors.ts';

const OPERATION = 'VirtualMachines_Get';
const CONCURRENCY = 32;
/** An answer so fresh serves a look-up that follows at once, as after a VM-deleted event: one VM, one read. */
const FRESH_MS = 30_000;

/**
 * VMs by exact ARM reads, one per distinct VM. Gone is only what ARM itself calls `ResourceNotFound` or
 * `ResourceGroupNotFound`; any other 404 (a missing subscription's, a proxy's) and any 403 is unknown.
 */
export class AzureOwners implements OwnerDirectory {
  readonly #clients: ArmClients;
  readonly #place: string | undefined;
  #last: { readonly key: string; readonly answer: OwnerAnswer; readonly atMs: number } | undefined;

  /** `place`: where a name is looked up that comes without one, the resource group of the request. */
  constructor(clients: ArmClients, place?: string) {
    this.#clients = clients;
    this.#place = place;
  }

  async lookup(refs: readonly OwnerRef[], signal: AbortSignal): Promise<Map<string, OwnerAnswer>> {
    const ids = new Map<string, ArmId>();
    for (const ref of refs) {
      const id = this.#resolve(ref);
      if (id) ids.set(id.key, id);
    }
    const ask = async (id: ArmId) => [id.key, await this.#answer(id, signal)] as const;
    const answers = new Map(await pMap(ids.values(), ask, { concurrency: CONCURRENCY }));
    return new Map(
      refs.map((ref) => {
        const id = this.#resolve(ref);
        const none: OwnerAnswer = {
          state: 'unknown',
          detail: `${ref.value} names no VM of subscription ${this.#clients.subscription}`,
        };
        return [ownerKey(ref), (id && answers.get(id.key)) ?? none];
      }),
    );
  }

  async read(vm: { readonly id: string; readonly place: string }, signal: AbortSignal): Promise<Vm | undefined> {
    const id = this.#resolve({ by: vm.id.includes('/') ? 'id' : 'name', value: vm.id, place: vm.place });
    if (!id) {
      const message = `${vm.id} is no VM that can be read here: give its full id, or its name and its resource group`;
      throw new CloudError({ code: 'invalid', nativeCode: 'InvalidVm', operation: OPERATION, message });
    }
    const answer = await this.#ask(id, signal);
    this.#last = { key: id.key, answer: answer.found, atMs: this.#clients.clock.now().getTime() };
    if (answer.error && answer.found.state !== 'gone') throw answer.error;
    return answer.found.vm;
  }

  #resolve(ref: OwnerRef): ArmId | undefined {
    const text = ref.by === 'id' ? bareId(ref.value) : vmIdOf(ref.place || (this.#place ?? ''), ref.value);
    const id = text === undefined ? undefined : parseArmIdOf(VM_TYPE, text);
    return id?.subscription.toLowerCase() === this.#clients.subscription && isVmName(id.name) ? id : undefined;
  }

  async #answer(id: ArmId, signal: AbortSignal): Promise<OwnerAnswer> {
    const last = this.#last;
    const isFresh = last?.key === id.key && this.#clients.clock.now().getTime() - last.atMs < FRESH_MS;
    return isFresh ? last.answer : (await this.#ask(id, signal)).found;
  }

  async #ask(id: ArmId, signal: AbortSignal): Promise<{ readonly found: OwnerAnswer; readonly error?: CloudError }> {
    try {
      const vm = await this.#get(id, signal);
      const { name, createdAt } = vm;
      // Whatever it is doing (creating, stopped, deleting), it is there.
      return { found: { state: 'alive', detail: 'answered by ARM', id: vm.id, name, createdAt, matches: 1, vm } };
    } catch (cause) {
      const error = toCloudError(cause, OPERATION, signal);
      const detail = `${error.nativeCode}: ${error.message}`;
      return { found: { state: isGone(error) ? 'gone' : 'unknown', detail, id: id.id, name: id.name }, error };
    }
  }

  async #get(id: ArmId, signal: AbortSignal): Promise<Vm> {
    const client = await this.#clients.compute();
    const native = await client.virtualMachines.get(id.resourceGroup, id.name, { abortSignal: signal });
    const answered = parseArmIdOf(VM_TYPE, native.id ?? '');
    if (answered?.key !== id.key)
      throw malformed(OPERATION, `asked for ${id.id}, answered ${native.id ?? 'without an id'}`);
    return toVm(native, answered);
  }
}

/** Owner ids come as ARM ids, or as a {@link Vm.key}. */
function bareId(value: string): string {
  return value.replace(/^azure:/, '').replace(/#.*$/, '');
}

/** A VM as ARM shows it, with what hangs on it: its NICs, its OS disk and its data disks. */
function toVm(native: VirtualMachine, id: ArmId): Vm {
  const { storageProfile, networkProfile } = native;
  const nics = (networkProfile?.networkInterfaces ?? []).map((nic) => nic.id);
  const disks = [storageProfile?.osDisk, ...(storageProfile?.dataDisks ?? [])].map((disk) => disk?.managedDisk?.id);
  const attachments: Attachment[] = [
    ...nics.map((one) => attachment('nic', one)),
    ...disks.map((one) => attachment('disk', one)),
  ].flat();
  return {
    id: id.id,
    // A VM made again under its name has the same ARM id and another vmId.
    key: native.vmId ? `${id.key}#${native.vmId.toLowerCase()}` : id.key,
    name: native.name ?? id.name,
    place: id.place,
    tags: native.tags ?? {},
    tagsIgnoreCase: true,
    state: 'alive',
    createdAt: native.timeCreated,
    attachments,
  };
}

function attachment(kind: Attachment['kind'], id: string | undefined): Attachment[] {
  return id ? [{ kind, id, key: `azure:${id.toLowerCase()}` }] : [];
}

/** An owner tag's value: a VM's ARM id, or its name in the resource's own group. Anything else keeps. */
export function parseOwnerTag(value: string, resource: Resource): OwnerRef | undefined {
  const text = value.trim();
  const id = parseArmIdOf(VM_TYPE, text);
  if (id) return { by: 'id', value: text.toLowerCase(), place: id.place };
  if (!isVmName(text)) return undefined;
  // Names have no case on Azure: one spelling, so that one VM is asked for once.
  return { by: 'name', value: text.toLowerCase(), place: resource.place };
}
