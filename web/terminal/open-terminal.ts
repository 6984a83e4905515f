import { DEFAULT_SHELL } from '../../src/client/default-shell.ts'
import { holdMachine } from '../../src/client/hold-machine.ts'
import { deputy } from '../deputy.ts'
import { type BrowserSession, openSession, type SessionOptions } from './open-session.ts'

type TerminalOptions = Pick<SessionOptions, 'terminal' | 'onData'> & { readonly signal: AbortSignal }

/**
 * A shell in a machine: beside the job that runs in it, or in a job of its own that holds a kept machine meanwhile, as
 * with `deputy shell`.
 */
export const openTerminal = async (machineId: string, options: TerminalOptions): Promise<BrowserSession> => {
  const machines = await deputy.machines()
  const machine = machines.find(({ machine_id }) => machine_id === machineId)
  if (machine === undefined) throw new Error(`The machine ${machineId.slice(0, 8)} is gone.`)
  const request = { ...options, env: { TERM: 'xterm-256color' } }
  if (machine.state === 'busy' && machine.job_id !== null)
    return openSession(machine.job_id, { ...request, argv: DEFAULT_SHELL })
  const held = await holdMachine(holder, { machine: machineId }, { signal: options.signal })
  try {
    const session = await openSession(held.jobId, { ...request, argv: held.wrap(DEFAULT_SHELL) })
    const exit = session.exit.then(async code => {
      // A terminal that was closed has ended the job itself.
      if (code !== null) await held.release(code).catch(() => {})
      return code
    })
    return { ...session, exit }
  } catch (error) {
    await holder.cancel(held.jobId).catch(() => {})
    throw error
  }
}

const holder: Parameters<typeof holdMachine>[0] = { ...deputy, openSession }
