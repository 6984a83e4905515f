import { die } from './errors.ts'
import type { Context } from './operation.ts'
import { DRIVE, parseProps } from './properties.ts'
import type { State, Vm, Volume } from './state.ts'

/** The guest that the path of a call names, on that node. */
export const vmOf = ({ state, params }: Context): Vm => {
  const vm = state.vms.get(Number(params.vmid))
  if (!vm || vm.node !== params.node) {
    return die(`Configuration file 'nodes/${params.node}/qemu-server/${params.vmid}.conf' does not exist`)
  }
  return vm
}

export const refuseIfLocked = (vm: Vm): void => {
  if (vm.config.lock) die(`VM is locked (${vm.config.lock})`)
}

/** Work under the lock of a guest's configuration, which every change takes and waits ten seconds for. */
export const withConfigLock = <T>(
  state: State,
  vmid: number,
  work: () => Promise<T>,
  options: { shared?: boolean; timeoutMs?: number } = {},
): Promise<T> =>
  state.locks.hold(
    `vm-${vmid}`,
    {
      timeoutMs: options.timeoutMs ?? state.timing.lockTimeoutMs,
      message: `can't lock file '/var/lock/qemu-server/lock-${vmid}.conf' - got timeout`,
      ...(options.shared === undefined ? {} : { shared: options.shared }),
    },
    work,
  )

/** Volumes are made one at a time per storage. */
export const withStorageLock = <T>(state: State, storage: string, work: () => Promise<T>): Promise<T> => {
  const shared = state.storages.get(storage)?.shared
  return state.locks.hold(
    `storage-${storage}`,
    {
      timeoutMs: state.timing.storageLockTimeoutMs,
      message: shared
        ? `cfs-lock 'storage-${storage}' error: got lock request timeout`
        : `can't lock file '/var/lock/pve-manager/pve-storage-${storage}' - got timeout`,
    },
    work,
  )
}

export interface Drive {
  readonly key: string
  readonly volid: string
  readonly props: Record<string, string>
  /** In a CD-ROM drive; the drive that is filled for cloud-init is one too. */
  readonly cdrom: boolean
  readonly cloudinit: boolean
}

export const drivesOf = (config: Readonly<Record<string, string>>): Drive[] =>
  Object.entries(config)
    .filter(([key]) => DRIVE.test(key))
    .map(([key, value]) => {
      const props = parseProps(value, 'file')
      const volid = props.file ?? ''
      return { key, volid, props, cdrom: props.media === 'cdrom', cloudinit: isCloudinit(volid) }
    })

const isCloudinit = (volid: string): boolean => /[-/:]cloudinit(\.|$)/.test(volid)

export const volumeOf = (state: State, volid: string, node: string): Volume | undefined =>
  state.volumes.get(volumeKey(state, volid, node))

/** The same name on two nodes is two volumes unless the storage is shared. */
const volumeKey = (state: State, volid: string, node: string): string => {
  const storage = state.storages.get(volid.split(':')[0]!)
  return storage?.shared ? volid : `${node}|${volid}`
}

export const putVolume = (state: State, volume: Volume, node: string): void => {
  state.volumes.set(volumeKey(state, volume.volid, node), volume)
}

export const dropVolume = (state: State, volid: string, node: string): void => {
  state.volumes.delete(volumeKey(state, volid, node))
}
