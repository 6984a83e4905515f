import { spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { parse } from 'yaml'
import { readIso } from '../../iso-reader.ts'
import type { ExecStatus, Guest, GuestAgent, GuestDriver, GuestSpec } from './driver.ts'

export interface FastGuestOptions {
  /** How long a guest takes until it reads its seed. */
  readonly bootMs?: number
  /** Whether guests run an agent. */
  readonly agent?: boolean
}

/**
 * Guests as local processes: the user-data of the seed is carried out below a directory of the guest's own.
 * Without isolation, so it is for tests and for trying things out, never for work of others.
 */
export const fastGuests = ({ bootMs = 0, agent = true }: FastGuestOptions = {}): GuestDriver => ({
  start: async spec => {
    const root = await mkdtemp(join(tmpdir(), `guest-${spec.vmid}-`))
    const machine = createMachine(root)
    await machine.prepare()
    const endWatch = watchOver(root)
    const off = watch(root, (_, name) => {
      if (name === 'off' && !machine.ended) spec.poweredOff()
    })
    const timer = setTimeout(() => void boot(machine, spec), bootMs)
    const end = () => {
      off.close()
      clearTimeout(timer)
      endWatch()
    }
    return guestOf(machine, { end, withAgent: agent })
  },
})

interface Machine {
  readonly root: string
  readonly env: NodeJS.ProcessEnv
  readonly groups: Set<number>
  ended: boolean
  prepare(): Promise<void>
  /** A path inside the guest as one outside. */
  inside(path: string): string
}

const createMachine = (root: string): Machine => ({
  root,
  groups: new Set(),
  ended: false,
  env: { PATH: `${join(root, 'bin')}:${process.env.PATH}`, DEPUTY_ROOT: root, DEPUTY_USER: '-', HOME: root },
  inside: path => (path.startsWith('/proc/') ? path : join(root, path)),
  prepare: async () => {
    await mkdir(join(root, 'bin'))
    // The guest switches itself off by leaving a word; its processes go with it. Nothing may reach this computer.
    const programs = {
      poweroff: `: >"${join(root, 'off')}"`,
      'systemd-run': 'exit 1',
      'cloud-init': 'exit 0',
      'qemu-ga': 'exit 0',
    }
    for (const [name, body] of Object.entries(programs)) {
      await writeFile(join(root, 'bin', name), `#!/bin/sh\n${body}\n`)
      await chmod(join(root, 'bin', name), 0o755)
    }
  },
})

const boot = async (machine: Machine, spec: GuestSpec): Promise<void> => {
  const userData = await findUserData(spec)
  if (machine.ended || userData === undefined) return
  const config = (parse(userData) ?? {}) as { write_files?: WriteFile[]; runcmd?: (string | string[])[] }
  for (const file of config.write_files ?? []) {
    const target = machine.inside(file.path)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, file.encoding === 'b64' ? Buffer.from(file.content, 'base64') : file.content)
    await chmod(target, Number.parseInt(file.permissions ?? '0644', 8))
  }
  for (const command of config.runcmd ?? []) {
    if (machine.ended) return
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    await run(
      machine,
      argv.map(word => word.replace(OURS, path => machine.inside(path))),
    )
  }
  // As cloud-init does when its last stage is over.
  const finished = machine.inside('/var/lib/cloud/instance/boot-finished')
  await mkdir(dirname(finished), { recursive: true })
  if (!machine.ended) await writeFile(finished, '')
}

interface WriteFile {
  path: string
  content: string
  encoding?: string
  permissions?: string
}

/** As cloud-init looks: a volume with the label, then the address in the serial number. */
const findUserData = async ({ cdroms, serial }: GuestSpec): Promise<string | undefined> => {
  for (const image of cdroms) {
    const iso = readIso(image)
    if (iso?.label.toLowerCase() === 'cidata') return iso.files.get('user-data')?.toString()
  }
  const url = /^ds=nocloud-net;s=(\S+)$/.exec(serial ?? '')?.[1]
  if (url === undefined) return undefined
  for (let attempt = 0; attempt < 20; attempt++) {
    const answer = await fetch(`${url}user-data`).catch(() => undefined)
    if (answer?.ok) return answer.text()
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return undefined
}

const CLOSE =
  'for f in /proc/$$/fd/*; do n=$(basename $f); [ $n -le 2 ] || eval "exec $n>&-"; done; exec "$@"'

const run = (machine: Machine, argv: readonly string[]): Promise<void> =>
  new Promise(resolve => {
    // A fresh machine has no descriptors of ours.
    const child = spawn('bash', ['-c', CLOSE, 'bash', ...argv], {
      cwd: machine.root,
      env: machine.env,
      stdio: 'ignore',
      detached: true,
    })
    const { pid } = child
    if (pid !== undefined) machine.groups.add(pid)
    child.on('error', () => resolve())
    child.on('exit', () => resolve())
  })

/**
 * Nobody is left to pull the plug when the emulator itself is killed. This holds one end of a pipe to it, and when
 * the other end is gone, ends everything that belongs to the guest: known by its environment, since jobs leave the
 * process group they were started in.
 */
const WATCH = `read -r _
n=0
while [ $n -lt 50 ]; do
  left=$(grep -lsaF -e "=$1" /proc/[0-9]*/environ)
  [ -n "$left" ] || break
  for file in $left; do pid=\${file#/proc/}; kill -9 "\${pid%/environ}" 2>/dev/null; done
  n=$((n + 1))
  sleep 0.1
done
rm -rf "$1"`

/** Returns how to end the watch. */
const watchOver = (root: string): (() => void) => {
  const watcher = spawn('sh', ['-c', WATCH, 'sh', root], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
    env: { PATH: process.env.PATH },
  })
  watcher.on('error', () => {})
  watcher.stdin.on('error', () => {})
  watcher.unref()
  if ('unref' in watcher.stdin && typeof watcher.stdin.unref === 'function') watcher.stdin.unref()
  return () => void watcher.kill('SIGKILL')
}

interface Parts {
  readonly end: () => void
  readonly withAgent: boolean
}

const guestOf = (machine: Machine, { end, withAgent }: Parts): Guest => {
  const agent = createAgent(machine)
  return {
    agent: () => (withAgent && !machine.ended ? agent : undefined),
    shutdown: async () => true,
    stop: async () => {
      machine.ended = true
      await killAll(machine)
      end()
      await rm(machine.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
}

/** Groups of our own, and what left them but still lives below the guest's directory. */
const killAll = async (machine: Machine): Promise<void> => {
  for (const pid of [...machine.groups, ...(await strays(machine.root))]) {
    for (const target of [-pid, pid]) {
      try {
        process.kill(target, 'SIGKILL')
      } catch {
        // It has ended already.
      }
    }
  }
}

const strays = async (root: string): Promise<number[]> => {
  const found: number[] = []
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    const environ = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '')
    // Runners are told their root; jobs have their home and working directory below it.
    if (environ.includes(`=${root}`)) found.push(Number(name))
  }
  return found
}

/** What belongs to us inside a guest, in the words of a command. */
const OURS = /(?<![\w/.-])\/(?:var\/lib|run)\/deputy(?![\w-])/g

/** The agent keeps so much of what a command prints. */
const MAX_OUTPUT = 16 * 1024 ** 2

const capped = (stream: Readable): (() => Buffer) => {
  const chunks: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    if (size < MAX_OUTPUT) chunks.push(chunk)
    size += chunk.length
  })
  return () => Buffer.concat(chunks).subarray(0, MAX_OUTPUT + 1)
}

const createAgent = (machine: Machine): GuestAgent => {
  const processes = new Map<number, ExecStatus>()
  return {
    exec: async (argv, input) => {
      const [program = '', ...rest] = argv.map(word => word.replace(OURS, path => machine.inside(path)))
      const child = spawn(program, rest, {
        cwd: machine.root,
        env: machine.env,
        detached: true,
      })
      child.on('error', () => {})
      const out = capped(child.stdout)
      const err = capped(child.stderr)
      child.stdin.on('error', () => {})
      child.stdin.end(input ?? '')
      const pid = child.pid ?? 0
      if (pid === 0)
        throw new Error(`Failed to execute child process "${argv[0]}" (No such file or directory)`)
      machine.groups.add(pid)
      processes.set(pid, { exited: false, out: Buffer.alloc(0), err: Buffer.alloc(0) })
      child.on('close', (code, signal) => {
        const status = signal === null ? { exitcode: code ?? 0 } : { signal: 9 }
        processes.set(pid, { exited: true, ...status, out: out(), err: err() })
      })
      return pid
    },
    execStatus: pid => {
      const status = processes.get(pid)
      if (status?.exited) processes.delete(pid)
      return status
    },
    readFile: path =>
      readFile(machine.inside(path)).catch(() =>
        Promise.reject(new Error(`failed to open file '${path}' (mode: 'r')`)),
      ),
    writeFile: (path, content) =>
      writeFile(machine.inside(path), content).catch(() =>
        Promise.reject(new Error(`failed to open file '${path}' (mode: 'wb')`)),
      ),
  }
}
