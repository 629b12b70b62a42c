import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two workers: the suites start servers (simulator, SQLite, Azurite) of their own, and two cores are the least we promise to run on.
    maxWorkers: 2,
  },
});
