import { defineConfig } from 'vitest/config'

// unit: pure and fast. integration: real processes, namespaces and sockets, started from dist/.
// e2e: the packed product with real outside tools; CI runs it, `npm test` does not. vm: jobs in machines that boot
// in QEMU; minutes long, so CI runs it, too.
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 20_000 } },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/build.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/support/build.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
        },
      },
      {
        test: {
          name: 'vm',
          include: ['test/vm/**/*.test.ts'],
          globalSetup: ['test/support/build.ts'],
          testTimeout: 360_000,
          hookTimeout: 900_000,
          maxWorkers: 1,
        },
      },
    ],
  },
})
