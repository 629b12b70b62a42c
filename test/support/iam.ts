import type { Template } from 'aws-cdk-lib/assertions';

/** One request as IAM sees it. */
export interface IamRequest {
  /** ARN of the resource; left out = statements for any resource count. */
  readonly resource?: string;
  /** Further condition keys, e.g. `ec2:CreateAction`. `aws:RequestedRegion` is {@link REGION} unless set. */
  readonly context?: Readonly<Record<string, string>>;
}

const REGION = 'us-east-1';
export const ACCOUNT = '123456789012';

/**
 * Actions that no code of ours calls: services use them under the function's role. Lambda polls the queues and writes the
 * logs; Resource Groups resolves a group by tags or by stack.
 */
export const ACTIONS_OF_SERVICES: readonly string[] = [
  'logs:CreateLogStream',
  'logs:PutLogEvents',
  'sqs:ReceiveMessage',
  'sqs:DeleteMessage',
  'sqs:GetQueueAttributes',
  'sqs:ChangeMessageVisibility',
  'tag:GetResources',
  'cloudformation:DescribeStacks',
  'cloudformation:ListStackResources',
];

type OneOrMore<T> = T | readonly T[];
type Intrinsic = unknown;

interface Statement {
  readonly Effect: 'Allow' | 'Deny';
  readonly Action: OneOrMore<string>;
  readonly Resource: OneOrMore<Intrinsic>;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, OneOrMore<Intrinsic>>>>>;
}

/**
 * Whether a role may make a call on a resource with these tags: a small evaluator of the synthesised identity policies.
 * What it does not know it refuses to judge.
 * @param role part of the role's logical id: `DeciderRole`, `DeleterRole`
 * @throws Error on an operator, an intrinsic or a role that it does not know
 */
export function policyAllows(
  template: Template,
  role: string,
  action: string,
  resourceTags: Readonly<Record<string, string>> = {},
  request: IamRequest = {},
): boolean {
  const context = contextOf(resourceTags, request.context);
  const applying = statementsOf(template, role).filter((statement) => applies(statement, action, context, request));
  return applying.some(({ Effect }) => Effect === 'Allow') && applying.every(({ Effect }) => Effect !== 'Deny');
}

/** Every action that some statement allows the role, sorted. */
export function allowedActions(template: Template, role: string): string[] {
  const allowed = statementsOf(template, role).filter(({ Effect }) => Effect === 'Allow');
  return [...new Set(allowed.flatMap(({ Action }) => list(Action)))].sort();
}

/** Statements of the inline and the managed policies of a role. */
export function statementsOf(template: Template, role: string): Statement[] {
  const ids = Object.keys(template.findResources('AWS::IAM::Role')).filter((id) => id.includes(role));
  const [id] = ids;
  if (id === undefined || ids.length > 1) throw new Error(`${ids.length} roles are called ${role}`);
  const policies = [
    ...Object.values(template.findResources('AWS::IAM::Policy')),
    ...Object.values(template.findResources('AWS::IAM::ManagedPolicy')),
  ];
  return policies
    .filter(({ Properties }) => (Properties.Roles ?? []).some((one: { Ref?: string }) => one.Ref === id))
    .flatMap(({ Properties }) => Properties.PolicyDocument.Statement as Statement[]);
}

function contextOf(tags: Readonly<Record<string, string>>, more: IamRequest['context'] = {}): Map<string, string> {
  const entries = [
    ['aws:RequestedRegion', REGION],
    ...Object.entries(tags).map(([key, value]) => [`aws:ResourceTag/${key}`, value]),
    ...Object.entries(more),
  ] as [string, string][];
  // Condition keys are compared without case, tag keys in them too.
  return new Map(entries.map(([key, value]) => [key.toLowerCase(), value]));
}

function applies(
  { Action, Resource, Condition = {} }: Statement,
  action: string,
  context: Map<string, string>,
  { resource }: IamRequest,
): boolean {
  if (!list(Action).some((one) => matches(one.toLowerCase(), action.toLowerCase()))) return false;
  if (resource !== undefined && !list(Resource).some((one) => matches(render(one), resource))) return false;
  return Object.entries(Condition).every(([operator, keys]) =>
    Object.entries(keys).every(([key, wanted]) =>
      holds(operator, context.get(key.toLowerCase()), list(wanted).map(render)),
    ),
  );
}

function holds(operator: string, actual: string | undefined, wanted: readonly string[]): boolean {
  const ifExists = operator.endsWith('IfExists');
  const plain = ifExists ? operator.slice(0, -'IfExists'.length) : operator;
  if (plain === 'Null') return wanted.includes(String(actual === undefined));
  if (ifExists && actual === undefined) return true;
  const equal = actual !== undefined && wanted.includes(actual);
  switch (plain) {
    case 'StringEquals':
      return equal;
    case 'StringNotEquals':
      // A missing key is not equal to anything.
      return !equal;
    case 'StringLike':
      return actual !== undefined && wanted.some((pattern) => matches(pattern, actual));
    default:
      throw new Error(`unknown condition operator ${operator}`);
  }
}

function matches(pattern: string, text: string): boolean {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's').test(text);
}

const PSEUDO: Readonly<Record<string, string>> = {
  'AWS::Region': REGION,
  'AWS::AccountId': ACCOUNT,
  'AWS::Partition': 'aws',
};

/** CloudFormation's intrinsics as text; a resource's attribute becomes `<logical id>.<attribute>`. */
function render(value: Intrinsic): string {
  if (typeof value === 'string') return value;
  const [[name, argument] = [], ...others] = Object.entries(value as object) as [string, unknown][];
  if (others.length === 0) {
    if (name === 'Ref' && typeof argument === 'string') return PSEUDO[argument] ?? argument;
    if (name === 'Fn::GetAtt') return (argument as string[]).join('.');
    if (name === 'Fn::Join') {
      const [separator, parts] = argument as [string, Intrinsic[]];
      return parts.map(render).join(separator);
    }
  }
  throw new Error(`unknown intrinsic ${JSON.stringify(value)}`);
}

function list<T>(value: OneOrMore<T>): readonly T[] {
  return Array.isArray(value) ? value : [value as T];
}
