import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Backend } from '../local/protocol.ts'

const run = promisify(execFile)

export interface Probe {
  readonly backend: Backend
  /** Why bubblewrap is not used, when it is not. */
  readonly bwrapProblem: string | null
  readonly bwrapVersion: string | null
}

/** Finds out how sandboxes can be built here. */
export const probeBackend = async (
  force: 'bwrap' | 'unshare' | undefined,
  signal: AbortSignal,
): Promise<Probe> => {
  const path = findProgram('bwrap')
  if (force === 'unshare')
    return { backend: await withoutBwrap(), bwrapProblem: 'switched off', bwrapVersion: null }
  if (path === undefined)
    return { backend: await withoutBwrap(), bwrapProblem: 'not installed', bwrapVersion: null }
  try {
    const [version, help] = await Promise.all([
      run(path, ['--version'], { signal }),
      run(path, ['--help'], { signal }),
    ])
    return {
      backend: { type: 'bwrap', path, disableUserns: help.stdout.includes('--disable-userns') },
      bwrapProblem: null,
      bwrapVersion: version.stdout.trim().replace(/^bubblewrap /, ''),
    }
  } catch (error) {
    return { backend: await withoutBwrap(), bwrapProblem: (error as Error).message, bwrapVersion: null }
  }
}

const withoutBwrap = async (): Promise<Backend> => {
  const setpriv = findProgram('setpriv')
  const help =
    setpriv === undefined ? '' : (await run(setpriv, ['--help']).catch(() => ({ stdout: '' }))).stdout
  if (help.includes('--seccomp-filter')) return { type: 'unshare', seccompLoader: 'setpriv' }
  return { type: 'unshare', seccompLoader: findProgram('perl') === undefined ? null : 'perl' }
}

/** Looked up in the system directories only: PATH may lead into a directory that others can write. */
export const findProgram = (name: string): string | undefined =>
  ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin']
    .map(dir => `${dir}/${name}`)
    .find(existsSync)
