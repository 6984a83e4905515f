import { AppError } from '../../jobs/errors.ts'
import type { RunnerHost } from '../../runner/channel.ts'
import { shellChannel } from '../../runner/shell-channel.ts'
import { enterArgv, MACHINE_LABEL, OWNER_LABEL } from './container-spec.ts'
import { field, text } from './engine-address.ts'
import { type EngineClient, inspectIfPresent } from './engine-client.ts'
import { execInContainer } from './exec-session.ts'
import { useFirstShell } from './first-shell.ts'

export interface ContainerState {
  readonly id: string
  readonly running: boolean
  readonly exitCode: number
  /** Another one after every start: what was in memory is gone. */
  readonly startedAt: string
  readonly owner: string | undefined
  readonly machineId: string | undefined
}

/** Undefined when the engine has no such container. */
export const inspectContainer = async (
  client: EngineClient,
  name: string,
  signal: AbortSignal,
): Promise<ContainerState | undefined> => {
  const found = await inspectIfPresent(client, `/containers/${name}/json`, signal)
  if (found === undefined) return undefined
  const state = field(found, 'State')
  const labels = field(field(found, 'Config'), 'Labels')
  return {
    id: text(found, 'Id') ?? '',
    running: field(state, 'Running') === true,
    exitCode: Number(field(state, 'ExitCode') ?? 0),
    startedAt: text(state, 'StartedAt') ?? '',
    owner: text(labels, OWNER_LABEL),
    machineId: text(labels, MACHINE_LABEL),
  }
}

export interface HostRequest {
  readonly client: EngineClient
  readonly name: string
  readonly machineId: string
  readonly owner: string
  readonly image: string
  /** The container has run nothing yet. */
  readonly isFresh: boolean
}

/**
 * How the runner in a container is reached: the first exchange through the shell that the container started with, each
 * later one through an exec, always with the script on stdin.
 */
export const containerHost = ({ client, name, image, isFresh, ...machine }: HostRequest): RunnerHost => {
  const { owner } = machine
  let hasFirstShell = isFresh
  return {
    name: `container ${name}`,
    retries: 3,
    failed: () => undefined,
    connect: async signal => {
      const state = await runningState(client, { name, image, signal })
      const channel = shellChannel(owner, {
        run: async ({ script, onOpen, ...session }) => {
          let isOpen = false
          const request = {
            ...session,
            container: name,
            input: `${script}exit\n`,
            onOpen: () => {
              isOpen = true
              onOpen(state.startedAt)
            },
          }
          const answer = hasFirstShell ? useFirstShell(client, request) : undefined
          hasFirstShell = false
          try {
            return (await answer) ?? (await execInContainer(client, { ...request, argv: enterArgv(machine) }))
          } catch (error) {
            // A container that ends just now, as one without a shell does, says why better than the engine.
            if (!isOpen) await runningState(client, { name, image, signal: session.signal })
            throw error
          }
        },
        lost: stderr =>
          new AppError(
            'unavailable',
            `The runner in ${name} ended: ${stderr.trim() || 'the stream was cut'}.`,
          ),
        isUnsent: () => false,
        isConnectionError: (error): error is AppError => error instanceof AppError,
      })
      return { ...channel, succeeded: () => undefined, failed: () => undefined }
    },
  }
}

/** Rejects with the reason if the container does not run. */
const runningState = async (
  client: EngineClient,
  { name, image, signal }: { name: string; image: string; signal: AbortSignal },
): Promise<ContainerState> => {
  const state = await inspectContainer(client, name, signal)
  if (state === undefined) throw isGone(name)
  if (!state.running) throw hasEnded(name, image, state)
  return state
}

const isGone = (name: string): AppError =>
  new AppError('not_found', `The container ${name} is gone: it was removed by somebody else.`, {
    hint: 'Submit the job again. docker events shows who removed it.',
  })

/** How the init processes of Podman (1) and Docker report that they could not start the shell; it never ends like that. */
const NOT_STARTED = [1, 126, 127]

const hasEnded = (name: string, image: string, { exitCode }: ContainerState): AppError =>
  NOT_STARTED.includes(exitCode)
    ? noShell(image)
    : new AppError(
        'not_found',
        `The container ${name} has ended (status ${exitCode}): the engine was restarted, or somebody stopped it.`,
        { hint: 'Submit the job again. Engines with live-restore keep containers through a restart.' },
      )

export const noShell = (image: string): AppError =>
  new AppError('unsupported', `The image '${image}' has no shell, which the runner needs.`, {
    hint: 'Use an image with sh, such as a -debug or -slim variant, or add busybox to it.',
  })
