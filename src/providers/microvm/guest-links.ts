import { closeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { abortable } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type GuestLink, openGuestLink } from './guest-link.ts'
import { lastConsoleLines, openMachineDirectory, SOCKET } from './machine-directory.ts'
import { processesOf } from './qemu-process.ts'

/** The connections of this daemon, one for each VM: the socket of a VM takes one at a time. */
export interface GuestLinks {
  /** Connects, or uses the connection that there is. Waits for a VM that is still booting. */
  to(machineId: string, signal: AbortSignal): Promise<GuestLink>
  end(machineId: string): void
  close(): void
}

const PAUSE_MS = 20

export const createGuestLinks = (stateDir: string): GuestLinks => {
  const links = new Map<string, Promise<GuestLink>>()
  const closing = new AbortController()

  const open = (machineId: string): Promise<GuestLink> => {
    const link = connectToGuest(stateDir, machineId, closing.signal)
    links.set(machineId, link)
    const forget = (): void => {
      if (links.get(machineId) === link) links.delete(machineId)
    }
    link.then(({ closed }) => closed.then(forget), forget)
    return link
  }
  const end = (machineId: string): void => {
    links.get(machineId)?.then(
      link => link.close(),
      () => undefined,
    )
    links.delete(machineId)
  }
  return {
    to: async (machineId, signal) => abortable(links.get(machineId) ?? open(machineId), signal),
    end,
    close: () => {
      closing.abort(new AppError('unavailable', 'The daemon is stopping.'))
      for (const machineId of links.keys()) end(machineId)
    },
  }
}

/** Retries until the agent answers or the VM has ended: its QEMU may not listen yet. */
const connectToGuest = async (
  stateDir: string,
  machineId: string,
  signal: AbortSignal,
): Promise<GuestLink> => {
  for (;;) {
    const directory = openMachineDirectory(stateDir, machineId)
    try {
      if (directory !== undefined) return await openGuestLink(`/proc/self/fd/${directory}/${SOCKET}`, signal)
    } catch (error) {
      if (signal.aborted) throw error
    } finally {
      if (directory !== undefined) closeSync(directory)
    }
    if ((await processesOf(machineId)).length === 0)
      throw hasEnded(machineId, lastConsoleLines(stateDir, machineId))
    await sleep(PAUSE_MS, undefined, { signal })
  }
}

const hasEnded = (machineId: string, said: string): AppError =>
  new AppError('not_found', `The VM of machine ${machineId} has ended${said === '' ? '' : `: ${said}`}.`, {
    hint: 'Somebody stopped it, or this computer ran out of memory. Submit the job again.',
  })
