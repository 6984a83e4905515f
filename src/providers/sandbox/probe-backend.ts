import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Backend } from '../local/shim-config.ts'
import { type TrySandboxOptions, trySandbox } from './try-sandbox.ts'

const run = promisify(execFile)

export interface Probe {
  readonly backend: Backend
  /** Why bubblewrap is not used, or null. */
  readonly bwrapProblem: string | null
  readonly bwrapVersion: string | null
  /** Why no sandbox starts, or null. */
  readonly sandboxProblem: string | null
}

export interface ProbeOptions extends TrySandboxOptions {
  readonly force: 'bwrap' | 'unshare' | undefined
}

/** Finds out how to build sandboxes on this computer by starting one. */
export const probeBackend = async ({ force, ...options }: ProbeOptions): Promise<Probe> => {
  const path = findProgram('bwrap')
  const { signal } = options
  if (force === 'unshare') return probeUnshare('switched off', options)
  if (path === undefined) return probeUnshare('not installed', options)
  try {
    const [version, help] = await Promise.all([
      run(path, ['--version'], { signal }),
      run(path, ['--help'], { signal }),
    ])
    const disableUserns = help.stdout.includes('--disable-userns')
    const { backend, sandboxProblem } = await tryBwrap(path, disableUserns, options)
    const bwrapVersion = version.stdout.trim().replace(/^bubblewrap /, '')
    if (sandboxProblem === null || force === 'bwrap')
      return { backend, bwrapProblem: null, bwrapVersion, sandboxProblem }
    return probeUnshare(`version ${bwrapVersion} does not work: ${sandboxProblem}`, options)
  } catch (error) {
    return probeUnshare((error as Error).message, options)
  }
}

/** AppArmor can allow namespaces to bubblewrap only: then the disk cannot be mounted beforehand. */
const tryBwrap = async (path: string, disableUserns: boolean, options: TrySandboxOptions) => {
  const make = (oneDisk: boolean): Backend => ({ type: 'bwrap', path, disableUserns, oneDisk })
  if ((await trySandbox(make(true), options)) === null) return { backend: make(true), sandboxProblem: null }
  return { backend: make(false), sandboxProblem: await trySandbox(make(false), options) }
}

const probeUnshare = async (bwrapProblem: string, options: TrySandboxOptions): Promise<Probe> => {
  const backend: Backend = { type: 'unshare', seccompLoader: await seccompLoader(options.signal) }
  return { backend, bwrapProblem, bwrapVersion: null, sandboxProblem: await trySandbox(backend, options) }
}

const seccompLoader = async (signal: AbortSignal): Promise<'setpriv' | 'perl' | null> => {
  const setpriv = findProgram('setpriv')
  const help =
    setpriv === undefined ? '' : (await run(setpriv, ['--help'], { signal }).catch(() => NOTHING)).stdout
  if (help.includes('--seccomp-filter')) return 'setpriv'
  return findProgram('perl') === undefined ? null : 'perl'
}

const NOTHING = { stdout: '' }

/** Searches the system directories only: PATH may contain a directory that others can write to. */
const findProgram = (name: string): string | undefined =>
  ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin']
    .map(dir => `${dir}/${name}`)
    .find(existsSync)
