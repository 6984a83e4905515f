import { runChaos } from './run.ts'

/** Called by scripts/chaos.mjs inside namespaces of its own: SEED MINUTES DIRECTORY PROVIDER… */
const [seed = '0', minutes = '2', kept = '', ...only] = process.argv.slice(2)
process.exitCode = await runChaos({ seed: Number(seed), minutes: Number(minutes), kept, only })
// Streams of commands that were killed may hold the process.
process.exit()
