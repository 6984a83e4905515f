import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'

interface ProjectOptions {
  readonly workers: number
  readonly timeoutSeconds?: number
  readonly setup?: readonly string[]
}

/** The tests below `test/<name>`. Projects run one after the other: each has its own number of workers. */
const project = (
  name: string,
  { workers, timeoutSeconds = 120, setup = ['test/support/build.ts'] }: ProjectOptions,
  groupOrder: number,
) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    globalSetup: ['test/support/scratch.ts', ...setup],
    testTimeout: timeoutSeconds * 1000,
    hookTimeout: timeoutSeconds * 1000,
    maxWorkers: workers,
    sequence: { groupOrder },
  },
})

const PROJECTS: Readonly<Record<string, ProjectOptions>> = {
  // Pure and fast. Without a number of workers Vitest leaves one core of two unused.
  unit: { workers: 3, setup: [] },
  // Real processes, namespaces and sockets, started from dist/. Most of them wait most of the time.
  integration: { workers: 5 },
  // CI runs the others, `npm test` does not. Crashes, cuts and outages, which take their time:
  faults: { workers: 5 },
  // The packed product with real outside tools.
  e2e: { workers: 1, timeoutSeconds: 180 },
  // Jobs in containers of Docker and Podman.
  containers: { workers: 2 },
  // Jobs in machines that boot in QEMU: an emulated processor among busy neighbours. Each wait inside has its bound.
  vm: { workers: 1, timeoutSeconds: 900 },
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/support/skipped-reporter.ts'],
    projects: Object.entries(PROJECTS).map(([name, options], order) => project(name, options, order)),
  },
})
