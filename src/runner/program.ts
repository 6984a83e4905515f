import { encodeRequest } from './codec.ts'
import type { Request } from './frames.ts'
import { runnerPart } from './program-part.ts'

const PARTS = ['main', 'processes', 'hold', 'start', 'follow', 'clean-up', 'list-and-pack', 'files']

/** The POSIX runner as one text, without comments and indentation: it travels with every request. */
const runnerProgram = (): string => {
  program ??= PARTS.map(runnerPart)
    .join('')
    .replace(/^\s*(?:#.*)?\n/gm, '')
    .replace(/^ +/gm, '')
  return program
}

let program: string | undefined

/** A script that answers the requests. In braces: a shell that receives only a part of it runs nothing. */
export const runnerScript = (requests: readonly Request[]): string =>
  `{\n${runnerProgram()}${requests.map(request => `request ${encodeRequest(request)}`).join('')}finish\n}\n`
