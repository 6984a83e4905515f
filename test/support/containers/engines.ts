import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { has } from '../has.ts'
import { removeDirectory } from '../remove-directory.ts'
import { asOrdinaryUser, killProcessesOfUser } from './rootless.ts'

/** A container engine of the test's own, with its own socket and storage. */
export interface TestEngine {
  readonly name: 'docker' | 'podman'
  /** For DOCKER_HOST. */
  readonly host: string
  readonly directory: string
  /** Where it stores what it downloads. */
  readonly downloads: string
  /** Its command line on the same storage, such as `podman --root DIR`. */
  readonly cli: Command
  pid(): number
  /** SIGKILL unless told. */
  kill(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
  api(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ status: number; text: string }>
  importImage(tar: string, name: string): Promise<void>
  close(): Promise<void>
}

export type EngineName = TestEngine['name']

/** Images that `importTools` and `importBusybox` make. */
export const TOOLS = 'localhost/deputy-test/tools:1'
export const BUSYBOX = 'localhost/deputy-test/busybox:1'

const READY_MS = 60_000

/** Why no engine can be started here. */
export const missingForEngine = (name: EngineName): string | undefined => {
  if (process.getuid?.() !== 0) return `${name} in this form needs root`
  const needed = name === 'docker' ? ['dockerd', 'containerd', 'runc'] : ['podman', 'conmon', 'runc']
  const tool = needed.find(one => !has(one, '/usr/sbin'))
  return tool && `${tool} is not installed`
}

export interface EngineOptions {
  /** More arguments of dockerd. */
  readonly more?: readonly string[]
  /** Registries without TLS. Docker takes those on loopback as they are. */
  readonly insecure?: readonly string[]
  /** Lets containers have a network: in a network namespace of the engine's own, or in that of the test. */
  readonly network?: 'own' | 'shared'
  /** Podman runs as an ordinary user. */
  readonly rootless?: boolean
}

export const createEngine = async (
  name: EngineName,
  { more = [], insecure = [], network, rootless = false }: EngineOptions = {},
): Promise<TestEngine> => {
  const directory = mkdtempSync(join(tmpdir(), `${name[0]}-`))
  const socket = join(directory, 's')
  const podman = podmanCli(directory, insecure)
  const command =
    name === 'docker'
      ? dockerCommand(directory, socket, network ? more : ['--bridge=none', ...more])
      : { ...podman, argv: [...podman.argv, 'system', 'service', '--time=0', `unix://${socket}`] }
  const apart = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
  const entry = [...(network === 'own' ? apart : []), ...(rootless ? asOrdinaryUser(directory) : [])]
  let child: ChildProcess | undefined
  // As a service of its own, as systems have it: it must outlive an engine that is killed.
  const containerd = name === 'docker' ? startContainerd(directory) : undefined

  const api: TestEngine['api'] = (method, path, body, headers) =>
    call(socket, method, path, body === undefined ? undefined : JSON.stringify(body), headers)

  const start = async (): Promise<void> => {
    const log = join(directory, 'log')
    child = spawn('sh', ['-c', 'exec "$@" >>"$0" 2>&1', log, ...entry, ...command.argv], {
      stdio: 'ignore',
      env: command.env,
      // Podman's monitor writes a file into the current directory when a container is out of memory.
      cwd: directory,
    })
    const deadline = performance.now() + READY_MS
    for (;;) {
      const ready = await api('GET', '/_ping').catch(() => undefined)
      if (ready?.status === 200) return
      if (child.exitCode !== null || performance.now() > deadline)
        throw new Error(`${name} does not start:\n${readFileSync(log, 'utf8').slice(-2000)}`)
      await sleep(50)
    }
  }

  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  await start()
  return {
    name,
    host: `unix://${socket}`,
    directory,
    downloads: join(directory, name === 'docker' ? 'data/tmp' : 'downloads'),
    cli: name === 'docker' ? { argv: ['docker', '-H', `unix://${socket}`], env: SYSTEM } : podman,
    pid: () => child?.pid ?? 0,
    kill: (signal = 'SIGKILL') => kill(signal),
    start,
    api,
    importImage: async (tar, image) => {
      const [repo = '', tag = ''] = image.split(/:(?=[^:]*$)/)
      const made = await call(socket, 'POST', '/images/create?fromSrc=-', createReadStream(tar))
      const id = /sha256:[0-9a-f]{64}/.exec(made.text)?.[0]
      if (id === undefined) throw new Error(`cannot import ${tar}: ${made.text}`)
      await api('POST', `/images/${id}/tag?repo=${encodeURIComponent(repo)}&tag=${tag}`)
    },
    close: async () => {
      const { text } = await api('GET', '/v1.40/containers/json?all=1').catch(() => ({ text: '[]' }))
      for (const { Id } of JSON.parse(text) as { Id: string }[])
        await api('DELETE', `/v1.40/containers/${Id}?force=1&v=1`).catch(() => undefined)
      await kill('SIGTERM')
      if (containerd) {
        const ended = once(containerd, 'exit')
        containerd.kill()
        await ended
      }
      killMonitors(directory)
      if (rootless) killProcessesOfUser()
      unmountBelow(directory)
      removeDirectory(directory)
    },
  }
}

/** The file system of `TOOLS` as a tar, made once for each run of a test file. */
export const importTools = async (engine: TestEngine): Promise<void> => {
  const tar = join(engine.directory, 'tools.tar')
  execFileSync('sh', [fileURLToPath(new URL('tools-image.sh', import.meta.url)), tar])
  await engine.importImage(tar, TOOLS)
}

/** An image with nothing but busybox. */
export const importBusybox = async (engine: TestEngine): Promise<void> => {
  const tar = join(engine.directory, 'busybox.tar')
  execFileSync('sh', [fileURLToPath(new URL('busybox-image.sh', import.meta.url)), tar])
  await engine.importImage(tar, BUSYBOX)
}

interface Command {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

const startContainerd = (directory: string): ChildProcess => {
  const config = join(directory, 'containerd.toml')
  writeFileSync(config, 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
  const at = (name: string): string => join(directory, name)
  return spawn(
    'sh',
    [
      ...['-c', 'exec "$@" >"$0" 2>&1', at('containerd.log'), 'containerd', '--config', config],
      ...['--address', at('c'), '--root', at('containerd'), '--state', at('state'), '--log-level', 'warn'],
    ],
    { stdio: 'ignore', env: SYSTEM },
  )
}

const SYSTEM = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }

const dockerCommand = (directory: string, socket: string, more: readonly string[]): Command => ({
  argv: [
    ...['dockerd', '--data-root', join(directory, 'data'), '--exec-root', join(directory, 'exec')],
    ...['-H', `unix://${socket}`, '-p', join(directory, 'pid'), '--log-level', 'warn'],
    ...['--iptables=false', '--ip6tables=false', ...more],
    ...['--containerd', join(directory, 'c')],
  ],
  env: SYSTEM,
})

/** crun does not work with hybrid cgroups, and raising limits may not be allowed: hence runc and the ulimits. */
const podmanCli = (directory: string, insecure: readonly string[]): Command => {
  const config = join(directory, 'containers.conf')
  writeFileSync(
    config,
    `[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "${join(directory, 'networks')}"
[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n`,
  )
  const at = (name: string): string => join(directory, name)
  const registries = insecure.map(host => `[[registry]]\nlocation = "${host}"\ninsecure = true\n`)
  writeFileSync(at('registries.conf'), registries.join(''))
  mkdirSync(at('downloads'))
  return {
    argv: [...['podman', '--root', at('root'), '--runroot', at('run'), '--tmpdir', at('tmp')]],
    env: {
      ...SYSTEM,
      CONTAINERS_CONF: config,
      CONTAINERS_REGISTRIES_CONF: at('registries.conf'),
      TMPDIR: at('downloads'),
    },
  }
}

const call = (
  socketPath: string,
  method: string,
  path: string,
  body?: string | NodeJS.ReadableStream,
  more: Readonly<Record<string, string>> = {},
): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const type = typeof body === 'string' ? 'application/json' : 'application/x-tar'
    const sent = request(
      { socketPath, method, path, headers: { ...(body && { 'content-type': type }), ...more } },
      answer => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
        )
      },
    )
    sent.on('error', reject)
    if (typeof body === 'object') body.pipe(sent)
    else sent.end(body)
  })

/** Podman's monitor of an exec lives five minutes longer than the exec, and then writes into the storage again. */
const killMonitors = (directory: string): void => {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (/^[^\0]*conmon\0/.test(line) && line.includes(`${directory}/`)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

/** Engines leave mounts of namespaces and layers when they end. */
const unmountBelow = (directory: string): void => {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' ')[1] ?? '')
    .filter(path => path.startsWith(`${directory}/`))
    .reverse()
  for (const path of mounts) {
    try {
      execFileSync('umount', ['-l', path], { stdio: 'ignore' })
    } catch {
      // It went with another one.
    }
  }
}
