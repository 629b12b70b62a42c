import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { policyJsonSchema } from '../shared/core/policy.ts';
import { reportJsonSchema } from '../shared/core/report.ts';

/** What in docs/ is made from the code: `npm run docs`. A test says when it is out of date. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  'policy.schema.json': () => `${JSON.stringify(policyJsonSchema(), null, 2)}\n`,
  'report.schema.json': () => `${JSON.stringify(reportJsonSchema(), null, 2)}\n`,
  'configuration.md': configuration,
};

interface Property {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Property>>;
}

function configuration(): string {
  const { properties = {} } = policyJsonSchema() as Property;
  return `# Configuration

The policy is one file, YAML or JSON; \`--policy\` of the command, \`policy\` of a deployment. Unknown keys fail, an empty
value is never zero, and every error names its field. An empty file is the default policy. Made from the schema
([policy.schema.json](policy.schema.json)); editors that know JSON Schema complete it.

| key | default | meaning |
|---|---|---|
${rows('', properties).join('\n')}

The command's flags \`--grace\`, \`--min-age\`, \`--settle\`, \`--budget\` and \`--mode\` stand above the file.

\`mode\` in a file can only make a deployment more careful: it deletes when the deployment's own mode is \`enforce\` and the
file does not say \`observe\`.
`;
}

function rows(prefix: string, properties: Readonly<Record<string, Property>>): string[] {
  return Object.entries(properties).flatMap(([key, property]) => {
    if (property.properties && property.type === 'object') return rows(`${prefix}${key}.`, property.properties);
    const values = property.enum ? `${property.enum.map((one) => `\`${one}\``).join(' or ')}. ` : '';
    const byDefault = property.default === undefined ? '' : `\`${JSON.stringify(property.default)}\``;
    return [`| \`${prefix}${key}\` | ${byDefault} | ${values}${property.description ?? ''} |`];
  });
}

if (import.meta.main) {
  for (const [file, make] of Object.entries(GENERATED)) writeFileSync(join(import.meta.dirname, file), make());
}
