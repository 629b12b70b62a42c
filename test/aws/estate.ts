import {
  CreateNetworkInterfaceCommand,
  CreateVolumeCommand,
  DescribeImagesCommand,
  DescribeSubnetsCommand,
  EC2Client,
  RunInstancesCommand,
  type Tag,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import { startAwsSimulator } from '../../simulator/aws/server.ts';
import { World } from '../../simulator/world/world.ts';
import { startMoto } from '../support/moto.ts';

type Tags = Readonly<Record<string, string>>;

/** An estate that a test can furnish, whichever server is behind it. */
export interface Estate {
  readonly name: string;
  readonly url: string;
  volume(tags: Tags): Promise<string>;
  eni(tags: Tags, description?: string): Promise<string>;
  run(tags: Tags): Promise<string>;
  terminate(id: string): Promise<void>;
  stop(): Promise<void>;
}

export async function simulated(): Promise<Estate> {
  // The real clock: the creation times of moto are real ones, and both are held by the same tests.
  const simulator = await startAwsSimulator({
    world: new World({ start: new Date(Date.now() - 1000), ticking: true }),
  });
  const region = simulator.region();
  return {
    name: 'simulator',
    url: simulator.url,
    volume: async (tags) => region.createVolume({ tags }),
    eni: async (tags, description) => region.createEni({ tags, description }),
    run: async (tags) => region.run({ tags, volumes: [{ deleteOnTermination: true }] }),
    terminate: async (id) => region.terminate(id),
    stop: () => simulator.close(),
  };
}

export async function onMoto(): Promise<Estate> {
  const moto = await startMoto();
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const ec2 = new EC2Client({ region: 'us-east-1', endpoint: moto.url, credentials });
  const { Subnets } = await ec2.send(new DescribeSubnetsCommand({}));
  const { Images } = await ec2.send(new DescribeImagesCommand({}));
  const list = (tags: Tags): Tag[] => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  const specification = <T extends string>(ResourceType: T, tags: Tags) =>
    Object.keys(tags).length > 0 ? [{ ResourceType, Tags: list(tags) }] : undefined;
  return {
    name: 'moto',
    url: moto.url,
    volume: async (tags) => {
      const input = { AvailabilityZone: 'us-east-1a', Size: 20, TagSpecifications: specification('volume', tags) };
      return (await ec2.send(new CreateVolumeCommand(input))).VolumeId ?? '';
    },
    eni: async (tags, Description) => {
      const input = {
        SubnetId: Subnets?.[0]?.SubnetId,
        Description,
        TagSpecifications: specification('network-interface', tags),
      };
      return (await ec2.send(new CreateNetworkInterfaceCommand(input))).NetworkInterface?.NetworkInterfaceId ?? '';
    },
    run: async (tags) => {
      const input = {
        ImageId: Images?.[0]?.ImageId,
        MinCount: 1,
        MaxCount: 1,
        TagSpecifications: specification('instance', tags),
      };
      return (await ec2.send(new RunInstancesCommand(input))).Instances?.[0]?.InstanceId ?? '';
    },
    terminate: async (id) => void (await ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }))),
    stop: () => moto.stop(),
  };
}
