import { abortable, createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import type { VmImage } from './image-store.ts'
import type { VmSize } from './qemu-command.ts'
import { makeSnapshot, type Snapshot, type VmParts } from './snapshot.ts'

/** The snapshot that new VMs start from. It is in the memory of this process, and gone with it. */
export interface Snapshots {
  /** Made on first use, and again for another image. Undefined where none can be made. */
  of(image: VmImage, size: VmSize, signal: AbortSignal): Promise<Snapshot | undefined>
  /** Makes the next VM start from another one. */
  drop(snapshot: Snapshot, why: unknown): void
  /** Whether this VM was booted only to take a snapshot of it. It is not recorded, so it must not be listed. */
  isMaking(machineId: string): boolean
  close(): void
}

export interface SnapshotsOptions extends VmParts {
  log(message: string, fields: Record<string, unknown>): void
}

const MAKE_MS = 600_000

export const createSnapshots = (options: SnapshotsOptions): Snapshots => {
  const closing = new AbortController()
  const machines = new Set<string>()
  let current: { readonly key: string; readonly made: Promise<Snapshot | undefined> } | undefined

  const make = async (image: VmImage, size: VmSize): Promise<Snapshot | undefined> => {
    const deadline = createDeadline([closing.signal], MAKE_MS)
    let machine = ''
    try {
      return await makeSnapshot(options, { image, size }, deadline.signal, id => {
        machine = id
        machines.add(id)
      })
    } catch (error) {
      if (!closing.signal.aborted) options.log('VMs boot: no snapshot can be made', { err: error })
      return undefined
    } finally {
      machines.delete(machine)
      deadline.clear()
    }
  }
  const forget = (): void => {
    void current?.made.then(snapshot => snapshot?.memory.close())
    current = undefined
  }
  return {
    of: (image, size, signal) => {
      const key = `${image.name} ${image.createdAt} ${JSON.stringify(size)}`
      if (current?.key !== key) {
        forget()
        current = { key, made: make(image, size) }
      }
      return abortable(current.made, signal)
    },
    drop: (snapshot, why) => {
      options.log('a VM boots: its snapshot cannot be used', { err: why })
      const dropped = current
      void dropped?.made.then(one => {
        if (one === snapshot && current === dropped) forget()
      })
    },
    isMaking: machineId => machines.has(machineId),
    close: () => {
      closing.abort(new AppError('unavailable', 'The daemon is stopping.'))
      forget()
    },
  }
}
