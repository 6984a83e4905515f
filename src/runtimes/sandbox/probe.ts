import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Backend } from '../local/protocol.ts'
import { trySandbox } from './trial.ts'

const run = promisify(execFile)

export interface Probe {
  readonly backend: Backend
  /** Why bubblewrap is not used, when it is not. */
  readonly bwrapProblem: string | null
  readonly bwrapVersion: string | null
  /** Why no sandbox can be made at all. */
  readonly trialProblem: string | null
}

export interface ProbeOptions {
  readonly force: 'bwrap' | 'unshare' | undefined
  readonly uid: number | null
  readonly signal: AbortSignal
}

/** Finds out how sandboxes can be built here, by building one. */
export const probeBackend = async ({ force, uid, signal }: ProbeOptions): Promise<Probe> => {
  const path = findProgram('bwrap')
  if (force === 'unshare') return fallBack('switched off', uid, signal)
  if (path === undefined) return fallBack('not installed', uid, signal)
  try {
    const [version, help] = await Promise.all([
      run(path, ['--version'], { signal }),
      run(path, ['--help'], { signal }),
    ])
    const backend: Backend = { type: 'bwrap', path, disableUserns: help.stdout.includes('--disable-userns') }
    const trialProblem = await trySandbox(backend, uid, signal)
    const bwrapVersion = version.stdout.trim().replace(/^bubblewrap /, '')
    if (trialProblem === null || force === 'bwrap')
      return { backend, bwrapProblem: null, bwrapVersion, trialProblem }
    return fallBack(`version ${bwrapVersion} does not work: ${trialProblem}`, uid, signal)
  } catch (error) {
    return fallBack((error as Error).message, uid, signal)
  }
}

const fallBack = async (bwrapProblem: string, uid: number | null, signal: AbortSignal): Promise<Probe> => {
  const backend: Backend = { type: 'unshare', seccompLoader: await seccompLoader(signal) }
  return { backend, bwrapProblem, bwrapVersion: null, trialProblem: await trySandbox(backend, uid, signal) }
}

const seccompLoader = async (signal: AbortSignal): Promise<'setpriv' | 'perl' | null> => {
  const setpriv = findProgram('setpriv')
  const help =
    setpriv === undefined ? '' : (await run(setpriv, ['--help'], { signal }).catch(() => NOTHING)).stdout
  if (help.includes('--seccomp-filter')) return 'setpriv'
  return findProgram('perl') === undefined ? null : 'perl'
}

const NOTHING = { stdout: '' }

/** Looked up in the system directories only: PATH may lead into a directory that others can write. */
const findProgram = (name: string): string | undefined =>
  ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin']
    .map(dir => `${dir}/${name}`)
    .find(existsSync)
