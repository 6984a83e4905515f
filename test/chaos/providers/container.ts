import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createEngine,
  type EngineName,
  importTools,
  missingForEngine,
  type TestEngine,
  TOOLS,
} from '../../support/containers/engines.ts'
import { freezeOne } from '../faults.ts'
import { processes } from '../processes.ts'
import type { Random } from '../random.ts'
import type { World } from '../world.ts'
import type { Provider } from './provider.ts'

interface Equipment {
  readonly engine: EngineName
  /** The address of this computer on the bridge of the engine. */
  readonly gateway: string
  /** What is killed, stopped and frozen. */
  readonly service: RegExp
  /**
   * What else belongs to the engine. A Docker that is killed while a container starts or ends forgets the process that
   * watches it, with all that runs there. The containers that it knows are leftovers of the product.
   */
  readonly helpers: RegExp
  ownsMount(line: string, directory: string): boolean
}

const DOCKER: Equipment = {
  engine: 'docker',
  gateway: '172.17.0.1',
  service: /^(?:\S*\/)?(?:dockerd|containerd) /,
  helpers: /containerd-shim/,
  // A Docker that is killed while it creates a container leaves the mount of the first layer.
  ownsMount: (line, directory) =>
    line.includes(`${directory}/data/overlay2/`) && line.includes('-init/merged '),
}

const PODMAN: Equipment = {
  engine: 'podman',
  gateway: '10.88.0.1',
  service: /^(?:\S*\/)?podman .* system service /,
  helpers: /^(?:\S*\/)?(?:podman|conmon|netavark|aardvark-dns|runc) /,
  ownsMount: (line, directory) => line.includes(`${directory}/`) || line.includes(' /run/netns/'),
}

/** Containers of an engine that is killed, stopped and frozen while they live on. */
const containersOf = (name: string, equipment: Equipment): Provider => ({
  name,
  missing: () => missingForEngine(equipment.engine),
  open: async world => {
    const { gateway, service, helpers } = equipment
    const more = equipment.engine === 'docker' ? ['--live-restore'] : []
    const engine = await createEngine(equipment.engine, { more, network: 'shared' })
    await importTools(engine)
    const port = await listen(world)
    const engines = () => processes().filter(({ command }) => service.test(command))
    return {
      config: { container: { host: engine.host, image: TOOLS } },
      // The bridge leads to the ledger, and to nothing else in the namespace of this run.
      place: () => ({ runtime: 'container', network: 'full' }),
      entry: key => `exec 3<>/dev/tcp/${gateway}/${port} && echo "${key}" >&3 && read -r _ <&3; exec 3>&-`,
      faults: [
        {
          name: 'engine-kill',
          target: 'engine',
          weight: 3,
          strike: random => restart(engine, 'SIGKILL', random),
        },
        {
          name: 'engine-stop',
          target: 'engine',
          weight: 1,
          strike: random => restart(engine, 'SIGTERM', random),
        },
        {
          name: 'engine-freeze',
          target: 'engine',
          weight: 2,
          strike: random => freezeOne(engines(), random),
        },
        {
          name: 'container-remove',
          target: 'engine',
          weight: 1,
          strike: random => removeOne(name, engine, world, random),
        },
      ],
      pids: () =>
        processes().flatMap(({ pid, command }) =>
          service.test(command) || helpers.test(command) ? [pid] : [],
        ),
      ownsMount: line => equipment.ownsMount(line, engine.directory),
      leftovers: async () => [
        ...(await containers(engine)).map(id => `container ${id}`),
        ...(await list(engine, '/v1.40/volumes', 'Volumes')).map(one => `volume ${JSON.stringify(one)}`),
      ],
      close: engine.close,
    }
  },
})

export const container = containersOf('container', DOCKER)
/** In place of Docker: the daemon has one engine. */
export const podman: Provider = { ...containersOf('podman', PODMAN), onlyByName: true }

/** Counts the keys that jobs send, and answers each when it is counted. */
const listen = ({ ledger }: World): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer(socket => {
      let key = ''
      socket.on('error', () => {})
      socket.on('data', chunk => {
        key += chunk
        if (!key.endsWith('\n')) return
        ledger.enter(key.trim())
        socket.end('counted\n')
      })
    })
    server.once('error', reject)
    // Of all interfaces: Podman makes its bridge for the first container. Only the namespace of this run is there.
    server.listen(0, '0.0.0.0', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })

const restart = async (
  engine: TestEngine,
  signal: 'SIGKILL' | 'SIGTERM',
  random: Random,
): Promise<string> => {
  const old = engine.pid()
  await engine.kill(signal)
  await sleep(random.between(0, 3000))
  await engine.start()
  return `pid ${old}, now ${engine.pid()}`
}

const removeOne = async (
  name: string,
  engine: TestEngine,
  { damage }: World,
  random: Random,
): Promise<string> => {
  const ids = await containers(engine)
  if (ids.length === 0) return 'nobody'
  const id = random.pick(ids)
  const over = damage.begin(name, 1)
  // Docker 20.10 could otherwise not remove the volume of the workspace, if it was restarted meanwhile.
  await engine.api('HEAD', `/v1.40/containers/${id}/archive?path=/`)
  await engine.api('DELETE', `/v1.40/containers/${id}?force=1`)
  setTimeout(over, 10_000).unref()
  return id
}

const containers = async (engine: TestEngine): Promise<string[]> =>
  (await list(engine, '/v1.40/containers/json?all=1')).map(one => String(Object(one).Id))

const list = async (engine: TestEngine, path: string, field?: string): Promise<unknown[]> => {
  const { text } = await engine.api('GET', path)
  const found: unknown = JSON.parse(text)
  const entries: unknown = field === undefined ? found : Object(found)[field]
  return Array.isArray(entries) ? entries : []
}
