import { readFileSync } from 'node:fs'

/** The shell programs of a container. They are read once, and hold nothing of a job. */
const read = (name: string): string =>
  readFileSync(new URL(`./program/${name}.sh`, import.meta.url), 'utf8').replace(/^#.*\n/gm, '')

export const IDLE = read('idle')
export const ENTER = read('enter')
export const UNPACK = read('unpack')
