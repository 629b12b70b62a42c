import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bicep, type Compiled, compilerMissing, FOLDER, SNAPSHOT } from './compiler.ts';

interface Problem {
  readonly check: string;
  readonly says: string;
}

/** Everything that the compiler has to say is a problem, warnings too. */
export function check(): Problem[] {
  return [
    ...spoken('build', bicep('build', 'main.bicep', '--stdout')),
    ...spoken('build-params', bicep('build-params', 'main.bicepparam', '--stdout')),
    ...linted(),
    ...formatted(),
    ...spoken(
      'snapshot (npm run snapshot:azure makes it anew)',
      bicep('snapshot', 'main.bicepparam', '--mode', 'validate', ...SNAPSHOT),
    ),
  ];
}

function spoken(name: string, { status, stderr, stdout }: Compiled): Problem[] {
  if (status === 0 && stderr.trim() === '') return [];
  return [{ check: name, says: stderr.trim() || stdout.trim() || `exit code ${status}` }];
}

function linted(): Problem[] {
  const { stdout, stderr } = bicep('lint', 'main.bicep', '--diagnostics-format', 'sarif');
  try {
    const { runs } = JSON.parse(stdout) as { runs: { results: { message: { text: string } }[] }[] };
    return runs.flatMap(({ results }) => results.map(({ message }) => ({ check: 'lint', says: message.text })));
  } catch {
    return [{ check: 'lint', says: stderr || stdout }];
  }
}

/** Formats a copy, in one go, and compares: a run of the compiler for each file takes as long as all the rest. */
function formatted(): Problem[] {
  const copy = mkdtempSync(join(tmpdir(), 'gleaner-format-'));
  try {
    const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.bicep(param)?$/.test(file),
    );
    for (const file of files) cpSync(join(FOLDER, file), join(copy, file));
    const said = spoken('format', bicep('format', '--pattern', join(copy, '**/*.bicep')));
    const example = spoken('format', bicep('format', join(copy, 'main.bicepparam')));
    const changed = files.filter(
      (file) => readFileSync(join(copy, file), 'utf8') !== readFileSync(join(FOLDER, file), 'utf8'),
    );
    return [
      ...said,
      ...example,
      ...changed.map((file) => ({ check: 'format', says: `${file} is not formatted: bicep format ${file}` })),
    ];
  } finally {
    rmSync(copy, { recursive: true });
  }
}

function main(): void {
  const missing = compilerMissing();
  if (missing) {
    console.log(`skipped: ${missing}`);
    return;
  }
  const problems = check();
  for (const { check: name, says } of problems) console.error(`${name}: ${says}`);
  console.log(
    problems.length === 0
      ? 'Bicep: compiles, is linted and formatted, and deploys what the snapshot says'
      : `Bicep: ${problems.length} problems`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  try {
    main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
