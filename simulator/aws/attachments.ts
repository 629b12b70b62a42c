import type { Instance } from '@aws-sdk/client-ec2';
import type { Region } from './region.ts';
import { ACCOUNT } from './rows.ts';

/** @throws when it is attached already and takes one attachment only */
export function attachVolume(region: Region, id: string, InstanceId: string, DeleteOnTermination: boolean): void {
  const { Attachments = [], MultiAttachEnabled } = region.volumes.get(id) ?? {};
  if (Attachments.length > 0 && !MultiAttachEnabled) throw new Error(`${id} is attached already`);
  const AttachTime = region.world.now();
  const State = region.attachMs > 0 ? 'attaching' : 'attached';
  const attachment = { VolumeId: id, InstanceId, State, DeleteOnTermination, AttachTime } as const;
  region.changeVolume(id, { State: 'in-use', Attachments: [...Attachments, attachment] });
  const Ebs = { VolumeId: id, Status: State, DeleteOnTermination, AttachTime } as const;
  changeInstance(region, InstanceId, ({ BlockDeviceMappings = [] }) => ({
    BlockDeviceMappings: [...BlockDeviceMappings, { DeviceName: '/dev/xvdb', Ebs }],
  }));
  if (State === 'attached') return;
  region.after(region.attachMs, () => {
    const now = region.volumes.get(id)?.Attachments?.find((one) => one.InstanceId === InstanceId);
    if (now?.State === 'attaching') markVolume(region, id, InstanceId, 'attached');
  });
}

export function attachEni(region: Region, id: string, InstanceId: string, DeleteOnTermination: boolean): void {
  const isSlow = region.attachMs > 0;
  const Attachment = {
    AttachmentId: region.id('eni-attach'),
    InstanceId,
    DeleteOnTermination,
    DeviceIndex: region.instances.get(InstanceId)?.NetworkInterfaces?.length ?? 0,
    Status: isSlow ? 'attaching' : 'attached',
    InstanceOwnerId: ACCOUNT,
  } as const;
  region.changeEni(id, { Status: isSlow ? 'attaching' : 'in-use', Attachment });
  changeInstance(region, InstanceId, ({ NetworkInterfaces = [] }) => ({
    NetworkInterfaces: [...NetworkInterfaces, { NetworkInterfaceId: id, Status: 'in-use' }],
  }));
  if (!isSlow) return;
  region.after(region.attachMs, () => {
    const now = region.enis.get(id)?.Attachment;
    if (now?.AttachmentId !== Attachment.AttachmentId || now.Status !== 'attaching') return;
    region.changeEni(id, { Status: 'in-use', Attachment: { ...now, Status: 'attached' } });
  });
}

export function detach(region: Region, id: string, instanceId?: string): void {
  const eni = region.enis.get(id)?.Attachment;
  const holders = region.volumes.get(id)?.Attachments?.map(({ InstanceId }) => InstanceId) ?? [eni?.InstanceId];
  const from = instanceId === undefined ? holders : [instanceId];
  if (region.detachMs > 0) {
    for (const one of from) markVolume(region, id, one, 'detaching');
    if (eni) region.changeEni(id, { Status: 'detaching', Attachment: { ...eni, Status: 'detaching' } });
  }
  region.after(region.detachMs, () => {
    for (const one of from) free(region, id, one);
  });
}

/** What the end of an instance does to one that it held: it goes too, or is left behind. */
export function release(region: Region, id: string, instanceId: string): void {
  const { Attachments = [] } = region.volumes.get(id) ?? {};
  const attachment = Attachments.find(({ InstanceId }) => InstanceId === instanceId) ?? region.enis.get(id)?.Attachment;
  // A volume that another instance still holds stays, whatever this one's attachment says.
  if (!attachment?.DeleteOnTermination || Attachments.length > 1) free(region, id, instanceId);
  else if (id.startsWith('vol-')) region.volumes.set(id, undefined);
  else region.enis.set(id, undefined);
}

function free(region: Region, id: string, instanceId: string | undefined): void {
  const volume = region.volumes.get(id);
  const eni = region.enis.get(id);
  if (volume) {
    const Attachments = (volume.Attachments ?? []).filter(({ InstanceId }) => InstanceId !== instanceId);
    region.changeVolume(id, { State: Attachments.length === 0 ? 'available' : 'in-use', Attachments });
  } else if (eni && eni.Attachment?.InstanceId === instanceId) {
    region.changeEni(id, { Status: 'available', Attachment: undefined });
  } else return;
  region.busyUntilMs.set(id, region.world.clock.now().getTime() + region.busyMs);
  changeInstance(region, instanceId, ({ BlockDeviceMappings, NetworkInterfaces }) => ({
    BlockDeviceMappings: BlockDeviceMappings?.filter(({ Ebs }) => Ebs?.VolumeId !== id),
    NetworkInterfaces: NetworkInterfaces?.filter(({ NetworkInterfaceId }) => NetworkInterfaceId !== id),
  }));
}

function markVolume(region: Region, id: string, instanceId: string | undefined, State: 'attached' | 'detaching'): void {
  const volume = region.volumes.get(id);
  if (!volume) return;
  const Attachments = volume.Attachments?.map((one) => (one.InstanceId === instanceId ? { ...one, State } : one));
  region.changeVolume(id, { Attachments });
  changeInstance(region, instanceId, ({ BlockDeviceMappings }) => ({
    BlockDeviceMappings: BlockDeviceMappings?.map((one) =>
      one.Ebs?.VolumeId === id ? { ...one, Ebs: { ...one.Ebs, Status: State } } : one,
    ),
  }));
}

/** An attachment may name an instance that this estate does not have: one of another account, or of a service. */
function changeInstance(
  region: Region,
  id: string | undefined,
  change: (instance: Instance) => Partial<Instance>,
): void {
  const instance = region.instances.get(id ?? '');
  if (instance) region.instances.set(instance.InstanceId ?? '', { ...instance, ...change(instance) });
}
