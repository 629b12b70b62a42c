/** An error as EC2 answers it. */
export class Ec2Error extends Error {
  override readonly name = 'Ec2Error';
  readonly code: string;
  readonly status: number;
  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

export const notFound = {
  volume: (id: string) => new Ec2Error('InvalidVolume.NotFound', `The volume '${id}' does not exist.`),
  eni: (id: string) =>
    new Ec2Error('InvalidNetworkInterfaceID.NotFound', `The networkInterface ID '${id}' does not exist`),
  instance: (id: string) => new Ec2Error('InvalidInstanceID.NotFound', `The instance ID '${id}' does not exist`),
  snapshot: (id: string) => new Ec2Error('InvalidSnapshot.NotFound', `The snapshot '${id}' does not exist.`),
};
