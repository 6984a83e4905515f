import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import type { CreateRequest } from '../../ports.ts'
import { inspectContainer, noShell } from './container-host.ts'
import { containerName, containerSpec, type SpecRequest } from './container-spec.ts'
import { text } from './engine-address.ts'
import type { EngineClient } from './engine-client.ts'
import { linkWorkspace } from './workspace-alias.ts'

/** Creates and starts the container of a machine, or adopts the one that an earlier attempt created. */
export const createContainer = async (
  client: EngineClient,
  spec: SpecRequest,
  signal: CreateRequest['signal'],
): Promise<{ startedAt: string }> => {
  const name = containerName(spec.machineId)
  try {
    const isRunning = await createOrAdopt(client, spec, signal)
    if (spec.engine === 'podman' && !isRunning) await linkWorkspace(client, name, signal)
    await client.json({ method: 'POST', path: `/containers/${name}/start`, signal })
  } catch (error) {
    throw explained(error, spec)
  }
  const state = await inspectContainer(client, name, signal)
  if (state === undefined)
    throw new AppError('unavailable', `The container ${name} was removed as soon as it was created.`)
  return { startedAt: state.startedAt }
}

const CREATING_MS = 60_000
const PAUSE_MS = 100

/**
 * An engine goes on with a request that is given up, and the container that it makes then would not be found by the
 * destruction that follows. So its answer is awaited a little longer.
 */
const LAST_ANSWER_MS = 5_000

/** Returns whether the container is running already. */
const createOrAdopt = async (
  client: EngineClient,
  spec: SpecRequest,
  signal: AbortSignal,
): Promise<boolean> => {
  const name = containerName(spec.machineId)
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const onAbort = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), LAST_ANSWER_MS)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    for (const until = performance.now() + CREATING_MS; ; await sleep(PAUSE_MS, undefined, { signal }))
      try {
        signal.throwIfAborted()
        await create(client, name, containerSpec(spec), late.signal)
        signal.throwIfAborted()
        return false
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'conflict') throw error
        // The name holds the id of the machine, and the labels prove it: the answer to an earlier attempt was lost.
        const found = await inspectContainer(client, name, signal)
        if (found?.owner === spec.owner && found.machineId === spec.machineId) return found.running
        // The engine reserves the name before it shows the container: the earlier attempt may still be under way.
        if (found !== undefined || performance.now() > until) throw error
      }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

const create = async (
  client: EngineClient,
  name: string,
  body: Record<string, unknown>,
  signal: AbortSignal,
): Promise<void> => {
  const post = (spec: Record<string, unknown>) =>
    client.json({ method: 'POST', path: '/containers/create', query: { name }, body: spec, signal })
  try {
    await post(body)
  } catch (error) {
    // Podman without catatonit: the shell that waits there reaps what jobs leave.
    if (!(error instanceof AppError) || !/init binary not found|catatonit/.test(error.message)) throw error
    await post({ ...body, HostConfig: { ...(body.HostConfig as object), Init: false } })
  }
}

/** Translates an error of the engine into the terms of the manifest. */
const explained = (error: unknown, { image, manifest }: SpecRequest): unknown => {
  if (!(error instanceof AppError)) return error
  const said = text(error.details, 'said') ?? error.message
  if (/executable file .*not found|no such file or directory/i.test(said) && /\bsh\b/.test(said))
    return noShell(image.name)
  if (/could not select device driver/i.test(said))
    return new AppError('unsupported', `The container engine offers no GPUs (gpus: ${manifest?.gpus}).`, {
      hint: 'Install the NVIDIA Container Toolkit on the engine, or leave gpus out.',
    })
  if (/unknown (?:or invalid )?runtime|runtime .*not (?:found|known)/i.test(said))
    return new AppError('unsupported', `The engine cannot use the runtime class: ${said}.`, {
      hint: 'docker info lists the runtimes. Set container.runtimeClass to one of them.',
    })
  return error
}
