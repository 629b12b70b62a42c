import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Starts a server as a child of this process and waits until `url` answers anything at all. */
export async function startServer(command: string, args: readonly string[], url: string, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
  let errors = '';
  child.stderr.on('data', (data) => {
    errors = `${errors}${data}`.slice(-100_000);
  });
  const deadline = Date.now() + 45_000;
  while (!(await answers(url))) {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${errors}`);
    if (Date.now() > deadline) throw new Error(`${command} does not answer on ${url}: ${errors}`);
    await sleep(100);
  }
  return { child, log: () => errors, stop: () => stop(child) };
}

async function answers(url: string): Promise<boolean> {
  try {
    await fetch(url, { signal: AbortSignal.timeout(2000) });
    return true;
  } catch {
    return false;
  }
}

/** By its own id, and waits for its end. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await Promise.race([ended, sleep(3000).then(() => child.kill('SIGKILL'))]);
}
