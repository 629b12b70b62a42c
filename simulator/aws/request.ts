import { Ec2Error } from './errors.ts';
import type { Filter } from './filters.ts';

const ALWAYS = new Set(['Action', 'Version', 'DryRun']);

/** A request of the EC2 Query API: `Action=…&Filter.1.Name=…&Filter.1.Value.1=…`. */
export class Ec2Request {
  readonly action: string;
  readonly #params: URLSearchParams;

  constructor(body: string) {
    this.#params = new URLSearchParams(body);
    this.action = this.#params.get('Action') ?? '';
  }

  text(name: string): string | undefined {
    return this.#params.get(name) ?? undefined;
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new Ec2Error('MissingParameter', `The request must contain the parameter ${name}`);
    return value;
  }

  number(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : Number(value);
  }

  list(name: string): string[] {
    const values: string[] = [];
    for (let index = 1; ; index += 1) {
      const value = this.text(`${name}.${index}`);
      if (value === undefined) return values;
      values.push(value);
    }
  }

  filters(): Filter[] {
    const filters: Filter[] = [];
    for (let index = 1; ; index += 1) {
      const name = this.text(`Filter.${index}.Name`);
      if (name === undefined) return filters;
      filters.push({ name, values: this.list(`Filter.${index}.Value`) });
    }
  }

  /** Tags of `TagSpecification.1.Tag.n`, or of `Tag.n`. */
  tags(prefix = 'TagSpecification.1.Tag'): { Key: string; Value: string }[] {
    const tags: { Key: string; Value: string }[] = [];
    for (let index = 1; ; index += 1) {
      const Key = this.text(`${prefix}.${index}.Key`);
      if (Key === undefined) return tags;
      tags.push({ Key, Value: this.text(`${prefix}.${index}.Value`) ?? '' });
    }
  }

  /** Where a page begins and how long it is; EC2 refuses MaxResults beside ids, and outside 5–1000. */
  page(ids: readonly string[]): { from: number; limit: number } {
    const limit = this.number('MaxResults');
    if (limit !== undefined && ids.length > 0) {
      throw new Ec2Error('InvalidParameterCombination', 'The parameter MaxResults cannot be used with ids');
    }
    if (limit !== undefined && !(limit >= 5 && limit <= 1000)) {
      throw new Ec2Error(
        'InvalidParameterValue',
        `Value ( ${limit} ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.`,
      );
    }
    const token = this.text('NextToken');
    const from = token === undefined ? 0 : this.#placeOf(token);
    return { from, limit: limit ?? 1000 };
  }
  /** The token of a place, good for this action alone. */
  tokenOf(place: number): string {
    return Buffer.from(`${this.action}:${place}`).toString('base64url');
  }

  /** Refuses what this action does not know: a parameter passed over in silence would look as if it were obeyed. */
  checkParameters(known: readonly string[]): void {
    for (const parameter of this.#params.keys()) {
      const name = parameter.split('.')[0] ?? '';
      if (!ALWAYS.has(name) && !known.includes(name))
        throw new Ec2Error('UnknownParameter', `The parameter ${name} is not recognized`);
    }
  }

  /** The request without what differs between two tries of it. */
  get fingerprint(): string {
    return this.#params.toString();
  }

  #placeOf(token: string): number {
    const [action, place = ''] = Buffer.from(token, 'base64url').toString().split(':');
    if (action !== this.action || !/^\d+$/.test(place))
      throw new Ec2Error('InvalidParameterValue', 'Unable to parse pagination token');
    return Number(place);
  }
}
