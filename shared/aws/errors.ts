import { CloudError, type ErrorCode } from '../core/errors.ts';

/** EC2's codes. Source: the EC2 API reference's list of error codes, and the threads named in docs/aws.md. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  'InvalidVolume.NotFound': 'gone',
  'InvalidNetworkInterfaceID.NotFound': 'gone',
  'InvalidNetworkInterface.NotFound': 'gone',
  'InvalidSnapshot.NotFound': 'gone',
  VolumeInUse: 'in-use',
  IncorrectState: 'in-use',
  'InvalidNetworkInterface.InUse': 'in-use',
  'InvalidAttachment.InUse': 'in-use',
  RequestLimitExceeded: 'throttled',
  Throttling: 'throttled',
  ThrottlingException: 'throttled',
  EC2ThrottledException: 'throttled',
  TooManyRequestsException: 'throttled',
  SnapshotCreationPerVolumeRateExceeded: 'throttled',
  ConcurrentSnapshotLimitExceeded: 'throttled',
  'IncorrectState.Conflict': 'conflict',
  ConcurrentModification: 'conflict',
  OperationNotPermitted: 'locked',
  UnauthorizedOperation: 'denied',
  AccessDenied: 'denied',
  AccessDeniedException: 'denied',
  ForbiddenException: 'denied',
  AuthFailure: 'denied',
  UnrecognizedClientException: 'denied',
  InvalidClientTokenId: 'denied',
  OptInRequired: 'denied',
  ExpiredToken: 'denied',
  RequestExpired: 'denied',
  InvalidParameterValue: 'invalid',
  InvalidParameterCombination: 'invalid',
  MissingParameter: 'invalid',
  FilterLimitExceeded: 'invalid',
  // aws-nuke 367: something else depends on it. Not gone, and no retry makes it so: reported as failed.
  DependencyViolation: 'invalid',
  'InvalidVolumeID.Malformed': 'invalid',
  'InvalidNetworkInterfaceId.Malformed': 'invalid',
  NotFoundException: 'invalid',
  BadRequestException: 'invalid',
  ServerInternal: 'unavailable',
  InternalError: 'unavailable',
  InternalFailure: 'unavailable',
  InternalServerErrorException: 'unavailable',
  ServiceUnavailable: 'unavailable',
  Unavailable: 'unavailable',
  TimeoutError: 'unavailable',
  CredentialsProviderError: 'denied',
  SignatureDoesNotMatch: 'denied',
};

/** Message texts, asked only where a code means several things. */
const MESSAGES: readonly { readonly code: string; readonly text: RegExp; readonly means: ErrorCode }[] = [
  // amazon-vpc-cni-k8s 69, 608, 1223: an ENI just detached answers this for a while.
  { code: 'InvalidParameterValue', text: /is currently in use/i, means: 'in-use' },
];

const NETWORK = /^(ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UND_ERR_\w+)$/;

/** Structured code before message text, message before status; unrecognised = unknown. */
export function toCloudError(error: unknown, operation: string): CloudError {
  if (error instanceof CloudError) return error;
  const fields = fieldsOf(error);
  const { nativeCode, message, retryAfterMs } = fields;
  return new CloudError({ code: canonical(fields), nativeCode, operation, message, retryAfterMs, cause: error });
}

interface Fields {
  readonly nativeCode: string;
  readonly message: string;
  readonly status: number | undefined;
  readonly retryAfterMs?: number;
}

function canonical({ nativeCode, message, status }: Fields): ErrorCode {
  const byMessage = MESSAGES.find(({ code, text }) => code === nativeCode && text.test(message));
  if (byMessage) return byMessage.means;
  const byCode = CODES[nativeCode];
  if (byCode) return byCode;
  if (NETWORK.test(nativeCode)) return 'unavailable';
  // An error beside a status of success: the answer came and could not be read (cut off, or not EC2's).
  if (status !== undefined && status < 300) return 'unavailable';
  if (status === 429) return 'throttled';
  if (status === 403) return 'denied';
  if (status !== undefined && status >= 500) return 'unavailable';
  return 'unknown';
}

function fieldsOf(error: unknown): Fields {
  if (!(error instanceof Error)) return { nativeCode: typeof error, message: String(error), status: undefined };
  const { Code, code, $metadata, $response, $retryable } = error as Error & {
    Code?: unknown;
    code?: unknown;
    $metadata?: { httpStatusCode?: number };
    $response?: { headers?: Record<string, string> };
    $retryable?: { throttling?: boolean };
  };
  const named = [Code, error.name, code].find(
    (one) => typeof one === 'string' && one !== 'Error' && one !== 'AggregateError',
  );
  const native = typeof code === 'string' && NETWORK.test(code) ? code : (named as string | undefined);
  const seconds = Number($response?.headers?.['retry-after']);
  // The SDK's own parser could not read it: its message is about brackets, and its class is SyntaxError.
  if (/Deserialization error/.test(error.message)) {
    return {
      nativeCode: 'UnreadableAnswer',
      message: 'the answer could not be read',
      status: $metadata?.httpStatusCode,
    };
  }
  return {
    nativeCode: native ?? ($retryable?.throttling ? 'Throttling' : error.name),
    message: error.message,
    status: $metadata?.httpStatusCode,
    ...(Number.isFinite(seconds) && seconds > 0 && { retryAfterMs: seconds * 1000 }),
  };
}
