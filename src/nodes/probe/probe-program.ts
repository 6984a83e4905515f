import { readFileSync } from 'node:fs'

let program: string | undefined

/** The program that prints the system and the load of a node. */
export const probeProgram = (): string => {
  program ??= readFileSync(new URL('./probe.sh', import.meta.url), 'utf8')
  return program
}
