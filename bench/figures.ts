import { spawnSync } from 'node:child_process';

/** One line: what, its figure, and what to hold it against. */
export function row(what: string, figure: string, beside: string): void {
  console.log(`${what.padEnd(34)} ${figure.padStart(10)}   ${beside}`);
}

/** Counts are exact: a wrong one ends the run. */
export function expect(actual: number | undefined, wanted: number): void {
  if (actual !== wanted) throw new Error(`counted ${actual}, expected ${wanted}`);
}

/** Seconds that it takes to load these modules at once; the median of five processes. */
export function loadS(files: readonly string[]): number {
  const script = `const t = performance.now(); await Promise.all(${JSON.stringify(files)}.map((file) => import(file))); console.log(performance.now() - t);`;
  const times = Array.from({ length: 5 }, () => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    if (!(Number(stdout) > 0)) throw new Error(`it did not load: ${stderr}`);
    return Number(stdout);
  });
  return (times.sort((a, b) => a - b)[2] ?? Number.NaN) / 1000;
}
