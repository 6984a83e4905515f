import { AppError } from '../../jobs/errors.ts'
import { type MachineEgress, openEgress } from '../../runner/machine-egress.ts'
import { RUNNER_HOME } from './container-spec.ts'
import type { EngineClient } from './engine-client.ts'
import { execInContainer } from './exec-session.ts'

export interface ContainerEgressRequest {
  readonly client: EngineClient
  readonly container: string
  readonly image: string
  readonly domains: readonly string[]
  readonly signal: AbortSignal
}

/** The network of a job with a list of domains. Its container has none. */
export const openContainerEgress = (request: ContainerEgressRequest): MachineEgress => {
  const { client, container, image, domains, signal } = request
  return openEgress({
    machine: `container ${container}`,
    home: RUNNER_HOME,
    network: domains,
    signal,
    run: async program => {
      try {
        const ended = await execInContainer(client, { container, ...program })
        if (ended.code === 126 || ended.code === 127) throw noPerl(image)
        return ended
      } catch (error) {
        throw isNotFound(error) ? noPerl(image) : error
      }
    },
  })
}

const isNotFound = (error: unknown): boolean =>
  error instanceof AppError && /executable file not found|no such file/i.test(error.message)

const noPerl = (image: string): AppError =>
  new AppError('unsupported', `The image '${image}' has no perl, which a list of domains needs.`, {
    hint: 'Use an image based on Debian or Ubuntu, add perl to the image, or use network none or full.',
  })
