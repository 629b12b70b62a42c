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

/** How a region that is not open to the account answers: all three have been seen. */
const CLOSED = {
  AuthFailure: 'AWS was not able to validate the provided access credentials',
  OptInRequired: 'You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe.',
  UnrecognizedClientException: 'The security token included in the request is invalid.',
} as const;

export type ClosedCode = keyof typeof CLOSED;
export const closed = (code: ClosedCode) => new Ec2Error(code, CLOSED[code], 401);
