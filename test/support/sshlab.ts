import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { networkInterfaces, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { removeDirectory } from './remove-directory.ts'

/** Real sshd processes to test against: each node has its own host key, home and, where we may, network and processes. */
export interface SshLab {
  readonly mode: 'namespaces' | 'loopback'
  readonly directory: string
  readonly identity: string
  readonly user: string
  readonly nodes: readonly LabNode[]
  close(): Promise<void>
}

export interface LabNode {
  readonly id: string
  readonly address: string
  readonly port: number
  readonly home: string
  /** Cuts the node off without a word: packets are lost, nothing is closed. */
  cut(): void
  mend(): void
  /** Ends sshd and everything that runs on the node, then starts it again. */
  reboot(): Promise<void>
  stop(): Promise<void>
  start(): Promise<void>
  newHostKey(): Promise<void>
  /** Runs a program on the node without ssh. */
  inside(command: string): string
}

export interface LabOptions {
  nodes?: number
  /** Extra lines of sshd_config. */
  config?: readonly string[]
  mode?: 'namespaces' | 'loopback'
  /** IPv6 addresses: `::1`, or one of a network of their own in a namespace. */
  ipv6?: boolean
}

export const missingForSshLab = (): string | undefined => {
  for (const tool of ['ssh', 'ssh-keygen']) if (!which(tool)) return `${tool} is not installed`
  return sshdPath() ? undefined : 'sshd is not installed'
}

export const missingForNamespaces = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  for (const tool of ['ip', 'unshare', 'mount']) if (!which(tool)) return `${tool} is not installed`
  const name = `dpprobe${process.pid}`
  try {
    execFileSync('ip', ['netns', 'add', name], { stdio: 'pipe' })
    execFileSync('ip', ['netns', 'exec', name, 'unshare', '-m', '-p', '-f', '--mount-proc', 'true'], {
      stdio: 'pipe',
    })
    return undefined
  } catch (error) {
    return `network namespaces cannot be made here: ${String(error).slice(0, 200)}`
  } finally {
    quietly('ip', ['netns', 'del', name])
  }
}

export const missingForIpv6 = (): string | undefined =>
  Object.values(networkInterfaces()).some(entries => entries?.some(entry => entry.address === '::1'))
    ? undefined
    : 'this computer has no IPv6'

export const createSshLab = async (options: LabOptions = {}): Promise<SshLab> => {
  const mode = options.mode ?? (missingForNamespaces() === undefined ? 'namespaces' : 'loopback')
  const directory = mkdtempSync(join(tmpdir(), 'dplab'))
  const identity = join(directory, 'user_key')
  keygen(identity)
  // sshd run by root looks for this directory and ends without it.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true })
  const ipv6 = options.ipv6 ?? false
  const network = mode === 'namespaces' ? createNetwork(ipv6) : undefined
  const nodes: Running[] = []
  const lab: SshLab = {
    mode,
    directory,
    identity,
    user: userInfo().username,
    nodes,
    close: async () => {
      await Promise.all(nodes.map(node => node.stop()))
      for (const node of nodes) node.dispose()
      network?.dispose()
      removeDirectory(directory)
    },
  }
  try {
    for (let index = 0; index < (options.nodes ?? 3); index++) {
      const node = await createNode({
        index,
        directory,
        identity,
        network,
        ipv6,
        config: options.config ?? [],
      })
      nodes.push(node)
      await node.start()
    }
    return lab
  } catch (error) {
    await lab.close()
    throw error
  }
}

interface Running extends LabNode {
  dispose(): void
}

interface Network {
  bridge: string
  /** The address of its n-th machine. */
  address(index: number): string
  dispose(): void
}

let networks = 0

/** A bridge in this namespace with a network nobody uses, so that every node has an address of its own. */
const createNetwork = (ipv6: boolean): Network => {
  const unique = `${(process.pid % 4096).toString(16)}${(networks++).toString(16)}`
  const bridge = `dpbr${unique}`
  const prefix = ipv6 ? `fd00:d:${unique}::` : `${freePrefix()}.`
  const address = (index: number): string => `${prefix}${index}`
  execFileSync('ip', ['link', 'add', bridge, 'type', 'bridge'])
  execFileSync('ip', ['addr', 'add', withLength(address(1)), 'dev', bridge, ...(ipv6 ? ['nodad'] : [])])
  execFileSync('ip', ['link', 'set', bridge, 'up'])
  return { bridge, address, dispose: () => quietly('ip', ['link', 'del', bridge]) }
}

const withLength = (address: string): string => `${address}/${address.includes(':') ? 64 : 24}`

const freePrefix = (): string => {
  const taken = execFileSync('ip', ['-4', 'addr'], { encoding: 'utf8' })
  for (let tries = 0; tries < 200; tries++) {
    const prefix = `10.${100 + ((process.pid + tries) % 100)}.${Math.floor(Math.random() * 250) + 1}`
    if (!taken.includes(`${prefix}.`)) return prefix
  }
  throw new Error('no free network for the lab')
}

const createNode = async (setup: {
  index: number
  directory: string
  identity: string
  network: Network | undefined
  ipv6: boolean
  config: readonly string[]
}): Promise<Running> => {
  const { index, network } = setup
  const id = `n${index + 1}`
  const root = join(setup.directory, id)
  const home = join(root, 'home')
  mkdirSync(home, { recursive: true })
  chmodSync(setup.directory, 0o755)
  const hostKey = join(root, 'host_key')
  keygen(hostKey)
  const loopback = setup.ipv6 ? '::1' : '127.0.0.1'
  const address = network?.address(index + 10) ?? loopback
  const port = network ? 22 : await freePort(loopback)
  const config = join(root, 'sshd_config')
  writeFileSync(
    config,
    [
      `Port ${port}`,
      `ListenAddress ${address}`,
      `HostKey ${hostKey}`,
      `AuthorizedKeysFile ${setup.identity}.pub`,
      'PidFile none',
      'UsePAM no',
      'StrictModes no',
      'PermitRootLogin prohibit-password',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PrintMotd no',
      `SetEnv HOME=${home} DEPUTY_LAB_NODE=${id}`,
      `Subsystem sftp internal-sftp`,
      ...setup.config,
      '',
    ].join('\n'),
  )
  const names = network ? attachNamespace(network, `${network.bridge}${id}`, address) : undefined
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const sshd = [sshdPath()!, '-D', '-e', '-f', config]
    const argv = names
      ? [
          'ip',
          'netns',
          'exec',
          names.namespace,
          'unshare',
          '-m',
          '-p',
          '-f',
          '--kill-child',
          '--mount-proc',
          '--',
          ...sshd,
        ]
      : sshd
    child = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
    let log = ''
    child.stderr!.on('data', chunk => {
      log = (log + String(chunk)).slice(-4000)
    })
    await waitFor(
      () => reachable(address, port),
      () => `sshd of ${id} did not listen: ${log}`,
    )
  }

  const stop = async (): Promise<void> => {
    const running = child
    child = undefined
    if (!running?.pid) return
    const gone = new Promise<void>(resolve => {
      if (running.exitCode !== null || running.signalCode !== null) resolve()
      else running.once('exit', () => resolve())
    })
    if (!names) for (const pid of childrenOf(running.pid)) quietlyKill(pid)
    // With namespaces the end of its first process is the end of all of the node's processes.
    quietlyKill(-running.pid)
    await gone
  }

  return {
    id,
    address,
    port,
    home,
    start,
    stop,
    cut: () => names && execFileSync('ip', ['link', 'set', names.outside, 'down']),
    mend: () => names && execFileSync('ip', ['link', 'set', names.outside, 'up']),
    reboot: async () => {
      await stop()
      await start()
    },
    newHostKey: async () => {
      await stop()
      rmSync(hostKey, { force: true })
      rmSync(`${hostKey}.pub`, { force: true })
      keygen(hostKey)
      await start()
    },
    inside: command => {
      const pid = names && child?.pid ? firstInside(child.pid) : undefined
      const argv = pid
        ? ['nsenter', '-t', String(pid), '-m', '-p', '-n', '--', 'sh', '-c', command]
        : ['sh', '-c', command]
      return execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' })
    },
    dispose: () => names && quietly('ip', ['netns', 'del', names.namespace]),
  }
}

const attachNamespace = (
  network: Network,
  name: string,
  address: string,
): { namespace: string; outside: string } => {
  const outside = name.slice(-15)
  const inside = `${outside.slice(0, 13)}i`
  execFileSync('ip', ['netns', 'add', name])
  execFileSync('ip', ['link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', name])
  execFileSync('ip', ['link', 'set', outside, 'master', network.bridge, 'up'])
  const nodad = address.includes(':') ? ['nodad'] : []
  execFileSync('ip', ['-n', name, 'addr', 'add', withLength(address), 'dev', inside, ...nodad])
  execFileSync('ip', ['-n', name, 'link', 'set', inside, 'up'])
  execFileSync('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
  return { namespace: name, outside }
}

/** unshare waits outside; its child is process 1 of the node. */
const firstInside = (pid: number): number | undefined => childrenOf(pid)[0]

const childrenOf = (pid: number): number[] => {
  try {
    const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return listed.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

const keygen = (path: string): void => {
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'lab', '-f', path])
}

const sshdPath = (): string | undefined =>
  ['/usr/sbin/sshd', '/usr/bin/sshd', '/sbin/sshd'].find(path => existsSync(path))

const which = (tool: string): boolean =>
  ['/bin', '/usr/bin', '/sbin', '/usr/sbin', '/usr/local/bin'].some(directory =>
    existsSync(join(directory, tool)),
  )

const quietly = (command: string, args: string[]): void => {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
  } catch {
    // Already gone.
  }
}

const quietlyKill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Already gone.
  }
}

const reachable = (host: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect({ host, port, timeout: 1000 })
    const done = (result: boolean): void => {
      socket.destroy()
      resolve(result)
    }
    socket.once('data', () => done(true))
    socket.once('timeout', () => done(false))
    socket.once('error', () => done(false))
  })

const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })

/** Waits for a condition, never for a time. */
export const waitFor = async (
  condition: () => boolean | Promise<boolean>,
  complaint: () => string = () => 'the condition did not come true',
  deadlineMs = 30_000,
): Promise<void> => {
  const end = Date.now() + deadlineMs
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(complaint())
    await new Promise(resolve => setTimeout(resolve, 25))
  }
}
