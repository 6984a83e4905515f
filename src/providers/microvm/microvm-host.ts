import { AppError } from '../../jobs/errors.ts'
import { WORKSPACE } from '../../jobs/paths.ts'
import type { RunnerHost } from '../../runner/channel.ts'
import { ENTER } from '../../runner/own-machine.ts'
import { shellChannel } from '../../runner/shell-channel.ts'
import type { GuestLinks } from './guest-links.ts'
import { runInGuest } from './run-in-guest.ts'

export interface HostRequest {
  readonly links: GuestLinks
  readonly machineId: string
  readonly owner: string
  readonly bootId: string | undefined
}

/** How the runner in a VM is reached: each exchange is a shell that reads the script from stdin. */
export const microvmHost = ({ links, machineId, owner, bootId }: HostRequest): RunnerHost => ({
  name: `VM ${machineId}`,
  retries: 3,
  failed: () => undefined,
  connect: async signal => {
    const link = await links.to(machineId, signal)
    const channel = shellChannel(owner, {
      run: ({ script, onOpen, ...session }) =>
        runInGuest(link, {
          ...session,
          argv: ['/bin/sh', '-c', ENTER, 'sh', `.cache/deputy/${owner}/work/${machineId}`, WORKSPACE],
          input: `${script}exit\n`,
          onOpen: () => onOpen(bootId),
        }),
      lost: stderr =>
        new AppError(
          'unavailable',
          `The runner in VM ${machineId} ended: ${stderr.trim() || 'the stream was cut'}.`,
        ),
      isUnsent: () => false,
      isConnectionError: (error): error is AppError => error instanceof AppError,
    })
    return { ...channel, succeeded: () => undefined, failed: () => undefined }
  },
})
