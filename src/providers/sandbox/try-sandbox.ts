import { spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { FIRST_CONTENT_FD } from '../local/local-machine.ts'
import type { Backend } from '../local/shim-config.ts'
import { DISKS_DIR, diskSetUp, hasOneDisk } from './job-disks.ts'
import { planSandbox } from './plan-sandbox.ts'

const MIB = 2 ** 20

export interface TrySandboxOptions {
  /** Identifies the owner of the sandbox if the test is interrupted. */
  readonly prefix: string
  readonly uid: number | null
  readonly signal: AbortSignal
}

/** Starts a sandbox that does nothing. Resolves to the problem, or null. */
export const trySandbox = (
  backend: Backend,
  { prefix, uid, signal }: TrySandboxOptions,
): Promise<string | null> =>
  new Promise(resolve => {
    const disk = hasOneDisk(backend) ? { dir: `${DISKS_DIR}/0`, release: () => {} } : null
    const plan = planSandbox(
      { backend, cgroup: null, cgroupPrefix: prefix, uid },
      {
        network: 'none',
        programs: [],
        limits: { memory: 64 * MIB, disk: MIB, cpu: 1, processes: 32 },
      },
      String(process.pid),
      disk,
    )
    const argv = [...(disk === null ? [] : diskSetUp(uid, MIB)), ...plan.argv]
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: '/',
      env: plan.env,
      signal,
      stdio: [
        'pipe',
        'pipe',
        'pipe',
        ...Array<'ignore'>(FIRST_CONTENT_FD - 3).fill('ignore'),
        ...plan.fdContents.map(() => 'pipe' as const),
        'pipe',
      ],
    })
    let text = ''
    const fds = child.stdio as readonly (Duplex | null)[]
    for (const fd of fds) fd?.on('error', () => {})
    plan.fdContents.forEach((content, index) => {
      fds[FIRST_CONTENT_FD + index]!.end(content)
    })
    child.stderr!.on('data', (chunk: Buffer) => {
      if (text.length < 2000) text += chunk.toString('utf8')
    })
    child.once('error', error => resolve(error.message))
    child.once('close', code => resolve(code === 0 ? null : oneLine(text) || `it ended with ${code}`))
    child.stdin!.end('exit 0\n')
  })

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300)
