import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import { inspectContainer } from './container-host.ts'
import { containerName } from './container-spec.ts'
import type { EngineClient } from './engine-client.ts'
import { inspectVolume } from './workspace-volume.ts'

const PAUSE_MS = 100

interface DestroyRequest {
  readonly machineId: string
  readonly owner: string
  readonly signal: AbortSignal
}

/** Removes the container of a machine, then its workspace. Resolves when the engine has confirmed that both are gone. */
export const destroyContainer = async (client: EngineClient, request: DestroyRequest): Promise<void> => {
  const name = containerName(request.machineId)
  const { signal } = request
  for (;;) {
    const found = await inspectContainer(client, name, signal)
    if (found === undefined) break
    assertOwned('container', found, request)
    await settleMounts(client, found.id, signal)
    // By id: the name may belong to a new container by then.
    await remove(client, `/containers/${found.id}`, { force: '1', v: '1' }, signal)
    await sleep(found.running ? 0 : PAUSE_MS, undefined, { signal })
  }
  for (;;) {
    const found = await inspectVolume(client, name, signal)
    if (found === undefined) return
    assertOwned('volume', found, request)
    const isRemoved = await remove(client, `/volumes/${name}`, {}, signal)
    if (!isRemoved) await sleep(PAUSE_MS, undefined, { signal })
  }
}

/**
 * Docker before version 24 forgets in a restart how often it has mounted a volume, then counts below zero when the
 * container is removed, and refuses to remove the volume. To stat a path, it mounts and unmounts the volumes of the
 * container once more, after which it no longer counts them at the removal.
 */
const settleMounts = async (client: EngineClient, id: string, signal: AbortSignal): Promise<void> => {
  const request = { method: 'HEAD', path: `/containers/${id}/archive`, query: { path: '/' }, signal } as const
  await client.json(request).catch(() => {})
}

/** Somebody else removed the container after a restart of such a Docker. Its next start makes the volume removable. */
const miscounted = ({ message }: AppError): AppError =>
  new AppError('unavailable', message, {
    hint: 'The volume is empty. Deputy removes it after the next restart of the engine.',
  })

const assertOwned = (
  kind: 'container' | 'volume',
  found: { readonly owner: string | undefined; readonly machineId: string | undefined },
  { machineId, owner }: DestroyRequest,
): void => {
  if (found.owner === owner && found.machineId === machineId) return
  const name = containerName(machineId)
  throw new AppError('conflict', `The ${kind} ${name} belongs to another installation of Deputy.`, {
    hint: `It is left alone. Look at its labels: docker ${kind} inspect ${name}`,
  })
}

/** Returns false if it is gone already, or if somebody else uses or removes it. */
const remove = async (
  client: EngineClient,
  path: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> => {
  try {
    await client.json({ method: 'DELETE', path, query, signal })
    return true
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (['not_found', 'conflict'].includes(error.code)) return false
    throw /active mounts/.test(error.message) ? miscounted(error) : error
  }
}
