import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync } from 'node:fs'
import { createServer } from 'node:net'
import { abortable } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { newId } from '../../jobs/ids.ts'
import { destroyMicrovm } from './destroy-microvm.ts'
import { findImage } from './image-store.ts'
import { MONITOR, openMachineDirectory, STATE } from './machine-directory.ts'
import { createMemoryFile, type MemoryFile } from './memory-file.ts'
import { connectWhenListening, type Monitor, openMonitor } from './monitor.ts'
import type { ProviderContext } from './provider-context.ts'
import { memoryBytes, RUN } from './qemu-command.ts'
import { runInGuest } from './run-in-guest.ts'
import { startVm, type VmRequest } from './start-vm.ts'

/** A VM that has booted and waits for its first job: its memory, and the state of its devices. */
export interface Snapshot {
  readonly memory: MemoryFile
  readonly state: Buffer
}

export type VmParts = Pick<ProviderContext, 'stateDir' | 'imagesDir' | 'links'>

/** What a runner uses first: read from the image once, and not again by each VM. */
const WARM_UP = 'for one in bash tar sed awk od stat find sleep; do "$one" --version; done >/dev/null 2>&1; :'

/** Boots a VM, saves it and ends it. `onMachine` learns its id before it exists. */
export const makeSnapshot = async (
  context: VmParts,
  { image, size }: Pick<VmRequest, 'image' | 'size'>,
  signal: AbortSignal,
  onMachine: (machineId: string) => void,
): Promise<Snapshot> => {
  const machineId = newId()
  onMachine(machineId)
  const memory = await createMemoryFile(memoryBytes(size), signal)
  try {
    const vm = startVm(context, { machineId, image, size, memory: { fd: memory.fd, use: 'shared' } })
    const state = await vm.until(bootAndSave(context, machineId, signal))
    await destroyMicrovm(context, machineId, signal)
    await memory.seal()
    return { memory, state }
  } catch (error) {
    memory.close()
    throw error
  } finally {
    // Also when the signal has aborted.
    await destroyMicrovm(context, machineId, AbortSignal.timeout(60_000))
  }
}

const bootAndSave = async (context: VmParts, machineId: string, signal: AbortSignal): Promise<Buffer> => {
  const link = await context.links.to(machineId, signal)
  await runInGuest(link, { argv: ['/bin/sh', '-c', WARM_UP], input: '', signal })
  link.close()
  await link.closed
  return withSockets(context, machineId, signal, async (monitor, statePath) => {
    const receiver = receiveState(statePath)
    try {
      await monitor.command('stop')
      await monitor.command('migrate', { uri: `unix:${RUN}/${STATE}` })
      await monitor.migrated()
      return await abortable(receiver.state, signal)
    } finally {
      receiver.close()
    }
  })
}

/** Starts a VM where a snapshot left off, with the time of now and random numbers of its own. */
export const restoreVm = async (
  context: VmParts,
  { machineId, image, size }: Omit<VmRequest, 'memory'>,
  { memory, state }: Snapshot,
  signal: AbortSignal,
): Promise<void> => {
  const vm = startVm(context, { machineId, image, size, memory: { fd: memory.fd, use: 'private' } })
  const resume = withSockets(context, machineId, signal, async (monitor, statePath) => {
    await monitor.command('migrate-incoming', { uri: `unix:${RUN}/${STATE}` })
    const socket = await connectWhenListening(statePath, signal)
    socket.on('error', () => undefined)
    socket.end(state)
    await monitor.migrated()
    await monitor.command('cont')
  })
  await vm.until(resume)
  // The files that QEMU has open must be those that the snapshot was made with.
  if (findImage(context.imagesDir, image.name)?.createdAt !== image.createdAt)
    throw new AppError('unavailable', `The image '${image.name}' was replaced while a VM was starting.`)
  const link = await vm.until(context.links.to(machineId, signal))
  await vm.until(link.renew(Date.now(), randomBytes(SEED_BYTES)))
}

const SEED_BYTES = 64

/** Only the devices are saved: the memory is in its file. */
const withSockets = async <T>(
  { stateDir }: Pick<ProviderContext, 'stateDir'>,
  machineId: string,
  signal: AbortSignal,
  work: (monitor: Monitor, statePath: string) => Promise<T>,
): Promise<T> => {
  const directory = openMachineDirectory(stateDir, machineId)
  if (directory === undefined) throw new AppError('not_found', `The machine ${machineId} is gone.`)
  try {
    const path = `/proc/self/fd/${directory}`
    const monitor = await openMonitor(`${path}/${MONITOR}`, signal)
    try {
      const capabilities = [{ capability: 'x-ignore-shared', state: true }]
      await monitor.command('migrate-set-capabilities', { capabilities })
      return await work(monitor, `${path}/${STATE}`)
    } finally {
      monitor.close()
    }
  } finally {
    closeSync(directory)
  }
}

/** Collects what QEMU sends to a socket of this name. */
const receiveState = (path: string): { readonly state: Promise<Buffer>; close(): void } => {
  const chunks: Buffer[] = []
  let done: (state: Buffer) => void = () => {}
  const state = new Promise<Buffer>(resolve => {
    done = resolve
  })
  const server = createServer(socket => {
    socket.on('data', chunk => chunks.push(chunk))
    socket.on('error', () => undefined)
    socket.once('end', () => done(Buffer.concat(chunks)))
  })
  server.listen(path)
  // QEMU has a user id of its own; only it gets into the directory.
  chmodSync(path, 0o666)
  return { state, close: () => void server.close() }
}
