import { defineConfig } from 'vitest/config'

// unit: pure and fast. integration: real processes, namespaces and sockets, started from dist/.
// faults: crashes, cuts and outages, which take their time; e2e: the packed product with real outside tools;
// containers: jobs in containers of Docker and Podman; vm: jobs in machines that boot in QEMU. CI runs these four,
// `npm test` does not.
// They run one after the other: each group has its own number of workers.
export default defineConfig({
  test: {
    reporters: ['default', './test/support/skipped-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          globalSetup: ['test/support/scratch.ts'],
          testTimeout: 120_000,
          sequence: { groupOrder: 0 },
          // Without it Vitest leaves one core of two unused.
          maxWorkers: 3,
        },
      },
      {
        test: {
          name: 'integration',
          sequence: { groupOrder: 1 },
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/scratch.ts', 'test/support/build.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Most of them wait most of the time.
          maxWorkers: 5,
        },
      },
      {
        test: {
          name: 'faults',
          sequence: { groupOrder: 2 },
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/support/scratch.ts', 'test/support/build.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Most of them wait most of the time.
          maxWorkers: 5,
        },
      },
      {
        test: {
          name: 'e2e',
          sequence: { groupOrder: 3 },
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/support/scratch.ts', 'test/support/build.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
        },
      },
      {
        test: {
          name: 'containers',
          sequence: { groupOrder: 4 },
          include: ['test/containers/**/*.test.ts'],
          globalSetup: ['test/support/scratch.ts', 'test/support/build.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'vm',
          sequence: { groupOrder: 5 },
          include: ['test/vm/**/*.test.ts'],
          globalSetup: ['test/support/scratch.ts', 'test/support/build.ts'],
          // An emulated processor among busy neighbours: each wait inside has a bound of its own.
          testTimeout: 900_000,
          hookTimeout: 900_000,
          maxWorkers: 1,
        },
      },
    ],
  },
})
