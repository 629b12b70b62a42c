import type { Answer } from '../http.ts';

/** An error as ARM answers it: `{"error": {"code", "message"}}`; without a code the bare message, as a proxy answers. */
export class ArmError extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryAfterS: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: readonly ErrorDetail[] | undefined;

  constructor(status: number, code: string, message: string, more: ErrorExtras = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterS = more.retryAfterS;
    this.headers = more.headers ?? {};
    this.details = more.details;
  }

  get body() {
    return { code: this.code, message: this.message, ...(this.details && { details: this.details }) };
  }

  toAnswer(): Answer {
    const headers = {
      'x-ms-failure-cause': 'gateway',
      ...(this.retryAfterS !== undefined && { 'retry-after': String(this.retryAfterS) }),
      ...this.headers,
    };
    // Something on the way answers in its own words, not ARM.
    if (this.code === '') return { status: this.status, headers: { 'content-type': 'text/html' }, body: this.message };
    return { status: this.status, headers, body: JSON.stringify({ error: this.body }) };
  }
}

interface ErrorExtras {
  readonly retryAfterS?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly details?: readonly ErrorDetail[];
}

interface ErrorDetail {
  readonly code: string;
  readonly message: string;
  /** Where a query is wrong. */
  readonly line?: number;
  readonly characterPositionInLine?: number;
  readonly token?: string;
}

const CLIENT = "The client 'gleaner' with object id '00000000-0000-0000-0000-00000000c11e'";

/** The errors in question, with Azure's own texts. */
export const armErrors = {
  resourceNotFound: (type: string, name: string, group: string) =>
    new ArmError(
      404,
      'ResourceNotFound',
      `The Resource '${type}/${name}' under resource group '${group}' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix`,
    ),
  groupNotFound: (group: string) =>
    new ArmError(404, 'ResourceGroupNotFound', `Resource group '${group}' could not be found.`),
  subscriptionNotFound: (subscription: string) =>
    new ArmError(404, 'SubscriptionNotFound', `The subscription '${subscription}' could not be found.`),
  disabled: (subscription: string) =>
    new ArmError(
      409,
      'ReadOnlyDisabledSubscription',
      `The subscription '${subscription}' is disabled and therefore marked as read only. You cannot perform any write actions on this subscription until it is re-enabled.`,
    ),
  missingApiVersion: () =>
    new ArmError(
      400,
      'MissingApiVersionParameter',
      'The api-version query parameter (?api-version=) is required for all requests.',
    ),
  noSuchPath: (path: string) =>
    new ArmError(404, 'InvalidResourceType', `The resource type could not be found at '${path}'.`),
  notAllowed: (method: string) =>
    new ArmError(405, 'HttpMethodNotSupported', `The http method '${method}' is not supported for this resource.`),
  scopeLocked: (verb: 'delete' | 'write', scope: string, locks: readonly string[]) =>
    new ArmError(
      409,
      'ScopeLocked',
      `The scope '${scope}' cannot perform ${verb} operation because following scope(s) are locked: '${locks.join(', ')}'. Please remove the lock and try again.`,
    ),
  authorizationFailed: (action: string, scope: string) =>
    new ArmError(
      403,
      'AuthorizationFailed',
      `${CLIENT} does not have authorization to perform action '${action}' over scope '${scope}' or the scope is invalid. If access was recently granted, please refresh your credentials.`,
    ),
  denied: (action: string, scope: string, deniedAt: string) =>
    new ArmError(
      403,
      'DenyAssignmentAuthorizationFailed',
      `${CLIENT} has permission to perform action '${action}' on scope '${scope}'; however, the access is denied because of the deny assignment with name 'managed' and Id 'd3117a55-0000-0000-0000-000000000001' at scope '${deniedAt}'.`,
    ),
  throttled: (retryAfterS: number) =>
    new ArmError(
      429,
      'SubscriptionRequestsThrottled',
      `Number of requests for subscription exceeded the limit. Please try again after '${retryAfterS}' seconds.`,
      { retryAfterS },
    ),
  nicReserved: (vmId: string) =>
    new ArmError(
      400,
      'NicReservedForAnotherVm',
      `Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: ${vmId}`,
    ),
  nicInUse: (nicId: string, by: string) =>
    new ArmError(
      400,
      'NicInUse',
      `Network Interface ${nicId} is used by existing resource ${by}. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.`,
    ),
  nicOfEndpoint: (nicId: string, endpoint: string) =>
    new ArmError(
      400,
      'NicInUseWithPrivateEndpoint',
      `Network interface ${nicId} cannot be deleted because it is currently in use with an private endpoint (${endpoint}).`,
    ),
  diskAttached: (name: string, vmId: string) =>
    new ArmError(409, 'OperationNotAllowed', `Disk ${name} is attached to VM ${vmId}.`),
  diskExported: (name: string) =>
    new ArmError(
      409,
      'OperationNotAllowed',
      `There is an active shared access signature outstanding for disk ${name}. Call EndGetAccess before attaching or deleting the disk. Learn more here: aka.ms/revokeaccessapi.`,
    ),
  invalidParameter: (target: string, why: string) =>
    new ArmError(400, 'InvalidParameter', `The value of parameter ${target} is invalid. ${why}`),
  noSource: (id: string) => new ArmError(404, 'NotFound', `Resource ${id} was not found.`),
  sourceNotReady: (name: string) =>
    new ArmError(
      409,
      'ReferencedResourceNotProvisioned',
      `Cannot proceed with operation since resource ${name} is not in Succeeded state.`,
    ),
  subnetInUse: (subnet: string, by: string) =>
    new ArmError(
      400,
      'InUseSubnetCannotBeDeleted',
      `Subnet ${subnet.slice(subnet.lastIndexOf('/') + 1)} is in use by ${by} and cannot be deleted. In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.`,
    ),
  groupBlocked: (group: string, ids: readonly string[]) =>
    new ArmError(
      409,
      'ResourceGroupDeletionBlocked',
      `Deletion of resource group '${group}' failed as resources with identifiers '${ids.join(',')}' could not be deleted. The provisioning state of the resource group will be rolled back.`,
    ),
};
