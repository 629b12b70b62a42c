import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../../infra/azure/deploy.sh');
const OUTPUTS = JSON.stringify({ resourceGroupName: { value: 'blue' }, functionAppName: { value: 'blue-app' } });
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Runs the script with programs that only write down how they were called; `functionAfter` = looks until vmEvent is there. */
function deploy(parameters: object, functionAfter = 0) {
  const folder = mkdtempSync(join(tmpdir(), 'gleaner-deploy-'));
  folders.push(folder);
  const bin = join(folder, 'bin');
  const log = join(folder, 'log');
  mkdirSync(bin);
  const built = JSON.stringify({ parametersJson: JSON.stringify({ parameters }) });
  const program = (name: string, ...body: string[]) => {
    writeFileSync(join(bin, name), ['#!/usr/bin/env bash', `echo "${name} $*" >>'${log}'`, ...body, ''].join('\n'));
    chmodSync(join(bin, name), 0o755);
  };
  program('npm', `mkdir -p '${folder}/dist/azure'`);
  program('zip');
  program(
    'az',
    'case "$*" in',
    `  bicep*) echo '${built}' ;;`,
    `  deployment*) echo '${OUTPUTS}' ;;`,
    `  "functionapp function"*) [ "$(grep -c 'functionapp function' '${log}')" -gt ${functionAfter} ] ;;`,
    'esac',
  );
  mkdirSync(join(folder, 'infra/azure'), { recursive: true });
  const script = join(folder, 'infra/azure/deploy.sh');
  writeFileSync(script, readFileSync(SCRIPT));
  const file = join(folder, 'my.bicepparam');
  writeFileSync(file, '');
  const path = `${bin}:${join(process.execPath, '..')}:/usr/bin:/bin`;
  const { status, stdout, stderr } = spawnSync('bash', [script, file], {
    encoding: 'utf8',
    env: { PATH: path, GLEANER_DEPLOY_PAUSE: '0' },
  });
  const calls = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  return {
    status,
    stdout,
    stderr,
    calls: calls.map((call) =>
      call
        .split(/ --(?=[a-z])/)
        .slice(0, 2)
        .join(' --'),
    ),
    log: calls,
  };
}

describe('deploy.sh', () => {
  it('deploys what the app needs, then its code, then the events, once the function is there', () => {
    const { status, stdout, calls, log } = deploy({ location: { value: 'westeurope' }, name: { value: 'blue' } }, 2);
    expect(status).toBe(0);
    expect(stdout.trim().split('\n').at(-1)).toBe('done: blue-app in blue');
    expect(calls.map((call) => call.replace(/\/\S+/g, 'FILE'))).toEqual([
      'az bicep build-params --file FILE',
      'az deployment sub create --name blue',
      'npm run --silent build -- azure',
      'zip --quiet',
      'az functionapp deployment source config-zip --resource-group blue',
      'az functionapp function show --resource-group blue',
      'az functionapp function show --resource-group blue',
      'az functionapp function show --resource-group blue',
      'az deployment sub create --name blue',
    ]);
    const deployments = log.filter((call) => call.startsWith('az deployment'));
    expect(deployments.map((call) => /eventSubscription=\w+/.exec(call)?.[0])).toEqual([
      'eventSubscription=false',
      'eventSubscription=true',
    ]);
  });

  it('says it when the function does not appear, and sends no events to it', () => {
    const { status, stderr, log } = deploy({ location: { value: 'westeurope' } }, 99);
    expect([status, stderr]).toEqual([1, expect.stringContaining('blue-app shows no function vmEvent')]);
    expect(log.filter((call) => call.includes('eventSubscription=true'))).toEqual([]);
  });

  it('deploys nothing without a location', () => {
    const { status, stderr, log } = deploy({});
    expect([status, stderr]).toEqual([2, expect.stringContaining('sets no location')]);
    expect(log.filter((call) => call.startsWith('az deployment'))).toEqual([]);
  });
});
