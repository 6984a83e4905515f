import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import { inspectContainer } from './container-host.ts'
import { containerName } from './container-spec.ts'
import type { EngineClient } from './engine-client.ts'

const PAUSE_MS = 100

/** Removes the container of a machine. Resolves when the engine has confirmed that it is gone. */
export const destroyContainer = async (
  client: EngineClient,
  { machineId, owner, signal }: { machineId: string; owner: string; signal: AbortSignal },
): Promise<void> => {
  const name = containerName(machineId)
  for (;;) {
    const found = await inspectContainer(client, name, signal)
    if (found === undefined) return
    if (found.owner !== owner || found.machineId !== machineId)
      throw new AppError('conflict', `The container ${name} belongs to another installation of Deputy.`, {
        hint: `It is left alone. Look at its labels: docker inspect ${name}`,
      })
    // By id: the name may belong to a new container by then.
    await client
      .json({ method: 'DELETE', path: `/containers/${found.id}`, query: { force: '1', v: '1' }, signal })
      .catch((error: unknown) => {
        // Gone meanwhile, or somebody else is removing it.
        if (!(error instanceof AppError) || !['not_found', 'conflict'].includes(error.code)) throw error
      })
    await sleep(found.running ? 0 : PAUSE_MS, undefined, { signal })
  }
}
