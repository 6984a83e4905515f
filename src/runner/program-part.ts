import { readFileSync } from 'node:fs'

/** Reads one file of the POSIX runner, comments and indentation included. */
export const runnerPart = (name: string): string =>
  readFileSync(new URL(`./program/${name}.sh`, import.meta.url), 'utf8')
