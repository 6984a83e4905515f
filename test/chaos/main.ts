import { runChaos } from './run.ts'

/** Called by scripts/chaos.mjs inside namespaces of its own: SEED MINUTES JOBS DIRECTORY PROVIDER… */
const [seed = '0', minutes = '2', jobs = '0', kept = '', ...only] = process.argv.slice(2)
process.exitCode = await runChaos({
  seed: Number(seed),
  minutes: Number(minutes),
  jobs: Number(jobs),
  kept,
  only,
})
// Streams of commands that were killed may hold the process.
process.exit()
