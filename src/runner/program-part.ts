import { readFileSync } from 'node:fs'

/** A file of the POSIX runner, as it is. */
export const runnerPart = (name: string): string =>
  readFileSync(new URL(`./program/${name}.sh`, import.meta.url), 'utf8')
