import { MONITOR, SOCKET } from './machine-directory.ts'
import { LAUNCH } from './programs.ts'

export interface VmSize {
  readonly cpus: number
  /** Bytes that the job may use, files included. */
  readonly memory: number
  /** Bytes that each writable directory may hold. */
  readonly disk: number
  readonly processes: number
}

/** A file as memory: written by a VM whose snapshot it becomes, or the base that a VM has its own changes to. */
export type VmMemory = 'shared' | 'private'

export interface QemuRequest {
  readonly machineId: string
  readonly size: VmSize
  /** Absent: it has memory of its own. */
  readonly memory?: VmMemory | undefined
  /** Directories of the image and of the machine, as QEMU sees them. */
  readonly image: string
  readonly run: string
}

const MIB = 1024 * 1024
/** For the kernel, the agent and the page tables. */
const SYSTEM_BYTES = 160 * MIB

/** What an emulated processor should not spend time on. Only a panic is printed. */
const KERNEL_LINE = [
  ...['console=ttyS0', 'quiet', 'loglevel=1', 'panic=-1', 'acpi=off', 'mitigations=off', 'nokaslr'],
  ...['cryptomgr.notests', 'no_timer_check', 'random.trust_cpu=on', 'rdinit=/init'],
]

/** The name by which a VM is found among the processes. */
export const processName = (machineId: string): string => `deputy-microvm-${machineId}`

/** Few devices: what the guest cannot reach cannot be attacked. */
export const qemuArguments = ({ machineId, size, memory: file, image, run }: QemuRequest): string[] => {
  const { cpus, memory, disk, processes } = size
  const limits = Object.entries({ memory, disk, processes }).map(([name, value]) => `deputy.${name}=${value}`)
  return [
    ...['-name', processName(machineId), '-no-user-config', '-nodefaults', '-display', 'none', '-no-reboot'],
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...['-smp', String(cpus), '-m', `${memoryBytes(size) / MIB}M`],
    ...(file === undefined ? ['-machine', MACHINE] : fileMemory(file, size, run)),
    // Without cx16, because QEMU 7 now and then spoils the flags in that instruction, and the kernel panics.
    ...['-accel', 'tcg', '-cpu', 'Nehalem,-cx16,+rdrand'],
    ...['-kernel', `${image}/vmlinux`, '-initrd', `${run}/initrd`],
    ...['-append', [...KERNEL_LINE, ...limits].join(' ')],
    ...['-serial', `file:${run}/console`],
    ...['-drive', `file=${image}/root.squashfs,format=raw,if=none,id=root,readonly=on`],
    ...['-device', 'virtio-blk-pci,drive=root'],
    ...['-chardev', `socket,id=agent,path=${run}/${SOCKET},server=on,wait=off`],
    ...['-device', 'virtio-serial-pci,max_ports=2'],
    ...['-device', 'virtserialport,chardev=agent,nr=1'],
  ]
}

export const memoryBytes = ({ memory }: Pick<VmSize, 'memory'>): number =>
  Math.ceil((memory + SYSTEM_BYTES) / MIB) * MIB

const MACHINE = 'pc,usb=off,vmport=off'

/** Memory in a file, and a monitor socket: QEMU saves and loads the state of the devices through it. */
const fileMemory = (file: VmMemory, size: VmSize, run: string): string[] => [
  ...[
    '-object',
    `memory-backend-file,id=ram,size=${memoryBytes(size)},mem-path=${MEMORY_FILE},${FILE_MODES[file]}`,
  ],
  ...['-machine', `${MACHINE},memory-backend=ram`, ...(file === 'private' ? ['-incoming', 'defer'] : [])],
  ...['-chardev', `socket,id=monitor,path=${run}/${MONITOR},server=on,wait=off`],
  ...['-mon', 'chardev=monitor,mode=control'],
]

const FILE_MODES: Readonly<Record<VmMemory, string>> = { shared: 'share=on', private: 'share=off' }
/** QEMU gets the file as this descriptor. */
const MEMORY_FILE = '/proc/self/fd/3'

export interface SandboxRequest {
  readonly qemu: string
  /** On this computer. */
  readonly imageDirectory: string
  readonly machineDirectory: string
  /** Undefined: as the user of the daemon. */
  readonly uid: number | undefined
}

/**
 * Starts QEMU in namespaces of its own, without a network, where it sees the system, its image and its directory: what
 * breaks out of the VM is still inside. It outlives the daemon.
 */
export const sandboxedQemu = (
  { qemu, imageDirectory, machineDirectory, uid }: SandboxRequest,
  args: readonly string[],
): string[] => {
  const isRoot = uid !== undefined
  const bubblewrap = [
    ...['bwrap', '--unshare-all', '--new-session', '--cap-drop', 'ALL', '--clearenv', '--hostname', 'vm'],
    ...['--ro-bind', '/usr', '/usr', '--ro-bind-try', '/etc/ld.so.cache', '/etc/ld.so.cache'],
    ...['bin', 'sbin', 'lib', 'lib64'].flatMap(name => ['--symlink', `usr/${name}`, `/${name}`]),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--ro-bind', isRoot ? '/mnt/image' : imageDirectory, IMAGE],
    ...['--bind', isRoot ? '/mnt/run' : machineDirectory, RUN, '--chdir', RUN],
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--', qemu, ...args],
  ]
  if (!isRoot) return bubblewrap
  const mounts = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', LAUNCH, 'sh']
  return [...mounts, String(uid), machineDirectory, imageDirectory, ...bubblewrap]
}

/** Where QEMU finds its directories. */
export const IMAGE = '/image'
export const RUN = '/run'
