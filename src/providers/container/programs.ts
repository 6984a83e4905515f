import { readFileSync } from 'node:fs'

/** The programs of a container. They are read once, and hold nothing of a job. */
const read = (name: string): string =>
  readFileSync(new URL(`./program/${name}`, import.meta.url), 'utf8').replace(/^#.*\n/gm, '')

export const IDLE = read('idle.sh')
