import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createEngine,
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

/** The address of this computer on the bridge of Docker. */
const GATEWAY = '172.17.0.1'

/** Containers of a Docker that is killed, stopped and frozen while they live on. */
export const container: Provider = {
  name: 'container',
  missing: () => missingForEngine('docker'),
  open: async world => {
    const engine = await createEngine('docker', { more: ['--live-restore'], network: 'shared' })
    await importTools(engine)
    const port = await listen(world)
    return {
      config: { container: { host: engine.host, image: TOOLS } },
      // The bridge leads to the ledger, and to nothing else in the namespace of this run.
      place: () => ({ runtime: 'container', network: 'full' }),
      entry: key => `exec 3<>/dev/tcp/${GATEWAY}/${port} && echo "${key}" >&3 && read -r _ <&3; exec 3>&-`,
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
          strike: random => removeOne(engine, world, random),
        },
      ],
      pids: () => [...engines(), ...shims()].map(({ pid }) => pid),
      // A Docker that is killed while it creates a container leaves the mount of the first layer.
      ownsMount: line =>
        line.includes(`${engine.directory}/data/overlay2/`) && line.includes('-init/merged '),
      leftovers: async () => [
        ...(await containers(engine)).map(id => `container ${id}`),
        ...(await list(engine, '/v1.40/volumes', 'Volumes')).map(one => `volume ${JSON.stringify(one)}`),
      ],
      close: engine.close,
    }
  },
}

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
    server.listen(0, GATEWAY, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })

const engines = () => processes().filter(({ command }) => /^(?:\S*\/)?(?:dockerd|containerd) /.test(command))

/**
 * A Docker that is killed while a container starts or ends forgets the process that watches it, with all that runs there.
 * The containers that it knows are leftovers of the product.
 */
const shims = () => processes().filter(({ command }) => /containerd-shim/.test(command))

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

const removeOne = async (engine: TestEngine, { damage }: World, random: Random): Promise<string> => {
  const ids = await containers(engine)
  if (ids.length === 0) return 'nobody'
  const id = random.pick(ids)
  const over = damage.begin('container', 1)
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
