import { run } from './program.ts';

// Whoever reads the output may stop reading (`| head`): that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const [major = 0] = process.versions.node.split('.').map(Number);
if (major < 22) {
  process.stderr.write(
    `gleaner needs Node 22 or newer, this is ${process.versions.node}. In its repository, npx gleaner and npm run gleaner bring their own.\n`,
  );
  process.exitCode = 2;
} else {
  process.exitCode = await run(process.argv.slice(2));
}
