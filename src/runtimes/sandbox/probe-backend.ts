import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Backend } from '../local/shim-protocol.ts'
import { type TrialOptions, trySandbox } from './try-sandbox.ts'

const run = promisify(execFile)

export interface Probe {
  readonly backend: Backend
  /** Why bubblewrap is not used, when it is not. */
  readonly bwrapProblem: string | null
  readonly bwrapVersion: string | null
  /** Why no sandbox can be made at all. */
  readonly trialProblem: string | null
}

export interface ProbeOptions extends TrialOptions {
  readonly force: 'bwrap' | 'unshare' | undefined
}

/** Finds out how sandboxes can be built here, by building one. */
export const probeBackend = async ({ force, ...trial }: ProbeOptions): Promise<Probe> => {
  const path = findProgram('bwrap')
  const { signal } = trial
  if (force === 'unshare') return fallBack('switched off', trial)
  if (path === undefined) return fallBack('not installed', trial)
  try {
    const [version, help] = await Promise.all([
      run(path, ['--version'], { signal }),
      run(path, ['--help'], { signal }),
    ])
    const disableUserns = help.stdout.includes('--disable-userns')
    const { backend, trialProblem } = await tryBwrap(path, disableUserns, trial)
    const bwrapVersion = version.stdout.trim().replace(/^bubblewrap /, '')
    if (trialProblem === null || force === 'bwrap')
      return { backend, bwrapProblem: null, bwrapVersion, trialProblem }
    return fallBack(`version ${bwrapVersion} does not work: ${trialProblem}`, trial)
  } catch (error) {
    return fallBack((error as Error).message, trial)
  }
}

/** Where only bubblewrap may make namespaces, as AppArmor can have it, nothing can be mounted for it. */
const tryBwrap = async (path: string, disableUserns: boolean, trial: TrialOptions) => {
  const make = (oneDisk: boolean): Backend => ({ type: 'bwrap', path, disableUserns, oneDisk })
  if ((await trySandbox(make(true), trial)) === null) return { backend: make(true), trialProblem: null }
  return { backend: make(false), trialProblem: await trySandbox(make(false), trial) }
}

const fallBack = async (bwrapProblem: string, trial: TrialOptions): Promise<Probe> => {
  const backend: Backend = { type: 'unshare', seccompLoader: await seccompLoader(trial.signal) }
  return { backend, bwrapProblem, bwrapVersion: null, trialProblem: await trySandbox(backend, trial) }
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
