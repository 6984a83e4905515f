import { readFileSync } from 'node:fs'
import { encodeRequest } from './codec.ts'
import type { Request } from './frames.ts'

const PARTS = ['main', 'processes', 'hold', 'start', 'follow', 'clean-up', 'files']

/** The POSIX runner as one text, without comments and indentation: it travels with every request. */
const runnerProgram = (): string => {
  program ??= PARTS.map(part => readFileSync(new URL(`./program/${part}.sh`, import.meta.url), 'utf8'))
    .join('')
    .replace(/^\s*(?:#.*)?\n/gm, '')
    .replace(/^ +/gm, '')
  return program
}

let program: string | undefined

/** A script that answers the requests. In braces: a shell that receives only a part of it runs nothing. */
export const runnerScript = (requests: readonly Request[]): string =>
  `{\n${runnerProgram()}${requests.map(request => `request ${encodeRequest(request)}`).join('')}finish\n}\n`
