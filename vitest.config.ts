import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Generous: on a busy machine a server of another language may take half a minute to start.
    testTimeout: 90_000,
    hookTimeout: 240_000,
    // Two workers: the suites start servers (simulator, SQLite, Azurite) of their own, and two cores are the least we promise to run on.
    maxWorkers: 2,
  },
});
