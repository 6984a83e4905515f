import { AppError } from '../../jobs/errors.ts'
import { type EngineAddress, field, findEngine, text } from './engine-address.ts'
import { createEngineClient, type EngineClient } from './engine-client.ts'

export interface EngineSources {
  /** The setting `container.host`. */
  readonly host?: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly home: string
}

export interface Engines {
  /** Whether there is an engine to ask; costs a look at the file system. */
  isConfigured(): boolean
  /** The engine for new containers. Throws when there is none. */
  current(): EngineClient
  /** The engine that a container was created on, even if another one is configured now. */
  at(url: string): EngineClient
  /** `docker 27.1` or `podman 5.0`, for results. */
  label(client: EngineClient, signal: AbortSignal): Promise<string>
}

export const createEngines = (sources: EngineSources): Engines => {
  const clients = new Map<string, EngineClient>()
  const labels = new Map<string, string>()
  const find = (): EngineAddress | undefined => findEngine(sources)
  const open = (address: EngineAddress): EngineClient => {
    const known = clients.get(address.url)
    if (known) return known
    const client = createEngineClient(address)
    clients.set(address.url, client)
    return client
  }
  const current = (): EngineClient => {
    const address = find()
    if (address === undefined) throw noEngine()
    return open(address)
  }
  return {
    isConfigured: () => {
      try {
        return find() !== undefined
      } catch {
        // A context that does not exist: `check` reports it.
        return true
      }
    },
    current,
    at: url => {
      const address = find()
      return open(address?.url === url ? address : { url, source: 'the record of the machine' })
    },
    label: async (client, signal) => {
      const known = labels.get(client.address.url)
      if (known !== undefined) return known
      const label = engineLabel(await client.json({ path: '/version', signal }))
      labels.set(client.address.url, label)
      return label
    },
  }
}

export const engineLabel = (version: unknown): string => {
  const components = field(version, 'Components')
  const first: unknown = Array.isArray(components) ? components[0] : undefined
  const name = /podman/i.test(text(first, 'Name') ?? '') ? 'podman' : 'docker'
  return `${name} ${text(version, 'Version') ?? ''}`.trim()
}

/** Both serve the same API, with differences. */
export type EngineKind = 'docker' | 'podman'

export const engineKind = (label: string): EngineKind => (label.startsWith('podman') ? 'podman' : 'docker')

export const INSTALL_HINT =
  'Install Docker or Podman (apt install docker.io, or podman), or set DOCKER_HOST to the engine.'

const noEngine = (): AppError =>
  new AppError('unavailable', 'No container engine was found.', { hint: INSTALL_HINT, retryable: false })
