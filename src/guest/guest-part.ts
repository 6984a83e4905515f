import { readFileSync } from 'node:fs'

/** A shell program, or a part of one, that runs in a VM. */
export const guestPart = (name: string): string =>
  readFileSync(new URL(`./program/${name}.sh`, import.meta.url), 'utf8')
