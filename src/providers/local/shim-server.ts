import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import type { StartRequest } from '../../runner/client.ts'
import { createFrameReader, encodeAnswer, parseRequest, versionProblem } from '../../runner/codec.ts'
import { type Answer, OLDEST, type Request, type ShimState, VERSION } from '../../runner/frames.ts'
import { createHeldMachine, type HeldMachine } from './held-machine.ts'
import { toLocalError } from './local-error.ts'
import { createMachineFactory } from './machine-factory.ts'
import { endAnswer, refusal } from './run-end.ts'
import { toRunSpec } from './run-spec.ts'
import { serveSession } from './serve-session.ts'
import type { ShimConfig } from './shim-config.ts'

const HOME_CHECK_MS = 15_000

/** Accepts connections of the daemon and runs its jobs. Rejects when it cannot, as when the home was removed. */
export const serveShim = async (config: ShimConfig): Promise<void> => {
  // Use relative names: the path of a Unix socket is limited to 108 bytes.
  process.chdir(config.dir)
  const ownDir = join(config.dir, `${config.id}.d`)
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {}) // `close` follows.
    socket.on('close', () => sockets.delete(socket))
    const session = serveSession(socket, workspace => shim.machine(workspace))
    readRequests(socket, (request, data) => {
      if (!session.handle(request, data)) shim.handle(request, answer => sendAnswer(socket, answer))
    })
  })
  const listening = once(server, 'listening')
  listening.catch(() => {}) // Awaited below, unless what comes before it fails.
  server.listen(`${config.id}.sock`)
  // After the socket, which exists now: a daemon that starts removes directories without one.
  rmSync(ownDir, { recursive: true, force: true })
  mkdirSync(ownDir, { mode: 0o700 })
  const broadcast = (answer: Answer): void => {
    for (const socket of sockets) sendAnswer(socket, answer)
  }
  const shim = createShim(config, ownDir, broadcast, () => {
    server.close()
    rmSync(join(config.dir, `${config.id}.sock`), { force: true })
  })
  setInterval(() => {
    if (!existsSync(ownDir)) {
      console.error(`${ownDir} was removed: nobody can read results any more.`)
      void shim.leave(1)
    } else if (sockets.size === 0 && shim.idleMs() > config.idleSeconds * 1000) void shim.leave()
  }, HOME_CHECK_MS)
  await listening
  process.stdout.write('ready\n')
  shim.prepare()
}

const sendAnswer = (socket: Socket, answer: Answer): void => {
  if (!socket.destroyed) socket.write(encodeAnswer(answer))
}

const readRequests = (socket: Socket, onRequest: (request: Request, data: Buffer) => void): void => {
  const read = createFrameReader({ parse: parseRequest, onFrame: onRequest })
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (error) {
      sendAnswer(socket, { kind: 'failed', reason: toLocalError(error).message })
      socket.end()
    }
  })
}

interface Shim {
  handle(request: Request, answer: (answer: Answer) => void): void
  machine(id: string): HeldMachine | undefined
  /** Boots machines ahead of need. */
  prepare(): void
  /** Milliseconds since the shim last held a machine; 0 while it holds one. */
  idleMs(): number
  /** Ends the machines and the process, with this exit status. */
  leave(status?: number): Promise<void>
}

const createShim = (
  config: ShimConfig,
  ownDir: string,
  broadcast: (answer: Answer) => void,
  closeServer: () => void,
): Shim => {
  const factory = createMachineFactory(config, ownDir)
  const machines = new Map<string, HeldMachine>()
  let runs = 0
  let retiring = false
  let leaving = false
  let idleSince = performance.now()

  const leave = async (status = 0): Promise<void> => {
    if (leaving) return
    leaving = true
    closeServer()
    if (!retiring) broadcast({ kind: 'leaving' })
    retiring = true
    await Promise.all([factory.close(), ...[...machines.values()].map(machine => machine.destroy())])
    rmSync(ownDir, { recursive: true, force: true })
    process.exit(status)
  }

  /** Takes no new machine, and leaves when the last one has gone. */
  const retire = (): void => {
    if (!retiring) broadcast({ kind: 'leaving' })
    retiring = true
    if (machines.size === 0) void leave()
    else void factory.close()
  }

  const prepare = (): void => {
    try {
      if (!retiring) factory.refill()
    } catch (error) {
      console.error(error) // The next run boots its machine itself, or reports why it cannot.
    }
  }

  const onGone = async (id: string): Promise<void> => {
    machines.delete(id)
    idleSince = performance.now()
    broadcast({ kind: 'released', workspace: id, left: [] })
    if (retiring && machines.size === 0) await leave()
    else prepare()
  }

  const send = (answer: Answer): void => {
    broadcast(answer)
    // Not before: booting the next machine would delay this run.
    if (answer.kind === 'started') setImmediate(prepare)
  }

  const hold = (id: string): HeldMachine => {
    const held = machines.get(id)
    if (held !== undefined) return held
    if (retiring) throw new AppError('unavailable', 'This shim takes no new machine.')
    if (machines.size >= config.maxMachines)
      throw new AppError('unavailable', `This shim holds ${machines.size} machines already.`)
    return createHeldMachine({ id, factory, send, onGone: () => onGone(id) })
  }

  const start = (request: StartRequest): void => {
    const spec = toRunSpec(request)
    const machine = hold(spec.machineId)
    machine.start(spec)
    machines.set(spec.machineId, machine)
    runs += 1
    // Strings cannot be wiped from memory, so a shim that has held secrets exits after the run.
    if (runs >= config.maxJobs || Object.keys(spec.secrets).length > 0) retire()
  }

  const state = (): ShimState => ({
    ...{ id: config.id, pid: process.pid, uid: config.uids?.first ?? null, retiring },
    ...{ capacity: config.maxMachines, build: config.build },
    machines: [...machines.values()].map(machine => machine.describe()),
  })

  return {
    handle: createHandler({ machines, start, retire, state }),
    machine: id => machines.get(id),
    prepare,
    idleMs: () => (machines.size > 0 ? 0 : performance.now() - idleSince),
    leave,
  }
}

const helloAnswer = (hello: Extract<Request, { kind: 'hello' }>, shim: ShimState): Answer => {
  const problem = versionProblem(hello, { their: 'daemon', our: 'process that holds jobs' })
  if (problem !== undefined) return { kind: 'failed', reason: problem }
  return { kind: 'hello', version: VERSION, oldest: OLDEST, mark: hello.mark, boot: '-', shim }
}

const unknownRun = (run: string): AppError =>
  new AppError('not_found', `This shim does not hold the run ${run}.`)

interface HandlerOptions {
  readonly machines: ReadonlyMap<string, HeldMachine>
  /** Throws when the run cannot start. */
  start(request: StartRequest): void
  retire(): void
  state(): ShimState
}

const createHandler =
  ({ machines, start, retire, state }: HandlerOptions): Shim['handle'] =>
  (request, answer) => {
    switch (request.kind) {
      case 'hello':
        return answer(helloAnswer(request, state()))
      case 'start':
        try {
          return start(request)
        } catch (error) {
          return answer(refusal(request.run, toLocalError(error)))
        }
      case 'stop':
        for (const machine of machines.values())
          machine.stop(request.run, request.why ?? 'cancel', request.graceTenths / 10)
        return
      case 'follow': {
        const machine = [...machines.values()].find(held => held.holds(request.run))
        const result = machine?.result
        if (machine === undefined) answer(refusal(request.run, unknownRun(request.run)))
        else if (result !== undefined) answer(endAnswer(request.run, result))
        return
      }
      case 'release': {
        const machine = machines.get(request.workspace)
        if (machine === undefined) return answer({ kind: 'released', workspace: request.workspace, left: [] })
        return void machine.destroy()
      }
      case 'retire':
        return retire()
      default:
        answer({ kind: 'failed', reason: `A shim does not answer '${request.kind}'.` })
    }
  }
