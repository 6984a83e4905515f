import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Guest, GuestAgent, GuestSpec } from '../driver.ts'
import { agentOver } from './agent.ts'
import { openAgentChannel } from './agent-channel.ts'
import { AGENT_PORT, agentSocket, monitorSocket } from './command.ts'
import { openDoorway } from './line-socket.ts'
import { openMonitor } from './monitor.ts'
import { openWays, type Passage, type Way } from './passages.ts'

export interface MachineOptions {
  readonly spec: GuestSpec
  readonly directory: string
  readonly program: string
  readonly shutdownMs: number
  readonly agentTimeoutMs: number
  readonly passages: readonly Passage[]
  arguments(own: { readonly cdroms: readonly string[]; readonly ways: readonly Way[] }): readonly string[]
}

/** Starts QEMU, and resolves when it runs. */
export const startMachine = async (options: MachineOptions): Promise<Guest> => {
  const { spec, directory } = options
  const sockets = [monitorSocket(directory), agentSocket(directory)]
  await Promise.all(sockets.map(path => rm(path, { force: true })))
  const [monitorDoor, agentDoor] = await Promise.all(sockets.map(openDoorway))
  const cdroms = await writeCdroms(spec, directory)
  const ways = await openWays(options.passages, { directory, mayConnect: spec.mayConnect })
  const qemu = launch(options.program, options.arguments({ cdroms, ways: ways.list }))
  let agent: GuestAgent | undefined
  let present = false
  let stopping = false
  void qemu.ended.then(() => {
    for (const door of [monitorDoor, agentDoor, ways]) door?.close()
    present = false
    if (!stopping) spec.poweredOff()
  })
  void openAgentChannel(agentDoor!, options.agentTimeoutMs).then(
    channel => {
      agent = agentOver(channel)
    },
    // A machine whose configuration has no agent.
    () => {},
  )
  const monitor = await openMonitor(monitorDoor!, (event, data) => {
    // The guest opens the port when its agent starts, and the kernel closes it when the agent ends.
    if (event === 'VSERPORT_CHANGE' && data.id === AGENT_PORT) present = data.open === true
  }).catch(async () => {
    qemu.kill('SIGKILL')
    throw new Error(`QEMU did not start: ${await qemu.ended}`)
  })

  return {
    agent: () => (present ? agent : undefined),
    shutdown: async () => {
      await monitor.execute('system_powerdown').catch(() => {})
      return within(options.shutdownMs, qemu.ended)
    },
    stop: async () => {
      stopping = true
      // Asked like this, QEMU completes its files; the guest notices nothing but the end.
      qemu.kill('SIGTERM')
      if (!(await within(10_000, qemu.ended))) qemu.kill('SIGKILL')
      await qemu.ended
      monitor.close()
    },
  }
}

interface Qemu {
  /** Resolves, with what it had to say, when nothing runs any more. */
  readonly ended: Promise<string>
  kill(signal: NodeJS.Signals): void
}

/** The kernel ends QEMU when this process ends, whatever ended it. */
const launch = (program: string, args: readonly string[]): Qemu => {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let words = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    words = `${words}${text}`.slice(-2000)
  })
  return {
    ended: new Promise(resolve => {
      child.once('error', error => resolve(error.message))
      child.once('close', () => resolve(words.trim()))
    }),
    kill: signal => void child.kill(signal),
  }
}

const writeCdroms = (spec: GuestSpec, directory: string): Promise<string[]> =>
  Promise.all(
    spec.cdroms.map(async (content, index) => {
      const file = join(directory, `cdrom-${index}.iso`)
      await writeFile(file, content)
      return file
    }),
  )

const within = (ms: number, promise: Promise<unknown>): Promise<boolean> => {
  const timer = new AbortController()
  return Promise.race([
    promise.then(() => true),
    sleep(ms, false, { signal: timer.signal }).catch(() => false),
  ]).finally(() => timer.abort())
}
