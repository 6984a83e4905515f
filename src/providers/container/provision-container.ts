import { AppError } from '../../jobs/errors.ts'
import type { CreateRequest } from '../../ports.ts'
import { engineKind } from './container-engine.ts'
import { inspectContainer } from './container-host.ts'
import { containerName, isolationOf, type SpecRequest } from './container-spec.ts'
import { createContainer } from './create-container.ts'
import { destroyContainer } from './destroy-container.ts'
import { detailsOf } from './machine-details.ts'
import { clientOf, type ProviderContext } from './provider-context.ts'
import { ensureImage } from './pull-image.ts'
import { registryAuth } from './registry-credentials.ts'
import { assertImageAllowed } from './unmet-container-requirement.ts'

/** Pulls the image if needed, then creates and starts the container of a machine, which is recorded first. */
export const provisionContainer = async (
  context: ProviderContext,
  { machine, manifest, kind, signal, remember, waiting, timed }: CreateRequest,
): Promise<void> => {
  const { owner, engines } = context
  const name = containerName(machine.id)
  if (detailsOf(machine).boot !== undefined) {
    const client = clientOf(context, machine)
    const state = await inspectContainer(client, name, signal)
    if (state?.running || manifest?.machine !== undefined) return
    await destroyContainer(client, { machineId: machine.id, owner, signal })
  }
  const wanted = kind || (manifest?.image ?? context.image)
  if (wanted === undefined) throw new AppError('invalid', 'The job names no image.', { hint: 'Use --image.' })
  assertImageAllowed(wanted, context.allow)
  const client = engines.current()
  await remember({ engine: client.address.url, container: name })
  const engineLabel = await engines.label(client, signal)
  const engine = engineKind(engineLabel)
  if (engine === 'podman') assertPodmanCan(engineLabel, manifest?.gpus, context.runtimeClass)
  const begun = performance.now()
  const image = await ensureImage(client, {
    image: wanted,
    pull: manifest?.pull ?? 'missing',
    platform: manifest?.platform,
    auth: registry => registryAuth(registry, context),
    ...(waiting && { waiting }),
    signal,
  })
  const pulled = performance.now()
  const network = manifest?.network ?? 'none'
  const spec: SpecRequest = { ...context, engine, machineId: machine.id, image, manifest, network }
  const { startedAt } = await createContainer(client, spec, signal)
  timed?.({ image: Math.round(pulled - begun), create: Math.round(performance.now() - pulled) })
  await remember({ image, engineLabel, network, isolation: isolationOf(spec, engineLabel), boot: startedAt })
}

/** Podman takes these requests of Docker, and ignores them. */
const assertPodmanCan = (
  engine: string,
  gpus: string | undefined,
  runtimeClass: string | undefined,
): void => {
  if (gpus !== undefined)
    throw new AppError('unsupported', `GPUs need Docker; the engine is ${engine}.`, {
      hint: 'Set container.host to the socket of Docker, or leave gpus out.',
    })
  if (runtimeClass !== undefined)
    throw new AppError('unsupported', `container.runtimeClass needs Docker; the engine is ${engine}.`, {
      hint: `Remove it, and set runtime = "${runtimeClass}" in containers.conf of Podman.`,
    })
}
