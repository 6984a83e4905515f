import { endianness } from 'node:os'
import { type Architecture, DENIED, SYSCALLS } from './syscalls.ts'

/**
 * The seccomp filter of the sandbox, as the classic BPF program the kernel takes. Namespaces do not cover all of
 * the kernel (keyrings, AF_VSOCK, bpf, io_uring, userfaultfd…); this closes what they leave open.
 */
export const seccompFilter = (
  options: FilterOptions,
  architecture: string = process.arch,
): Buffer | undefined => {
  if ((architecture !== 'x64' && architecture !== 'arm64') || endianness() !== 'LE') return undefined
  return assemble(program(architecture, options))
}

export interface FilterOptions {
  /** Whether the kernel counts the job's memory. If not, memory that belongs to no process is denied. */
  readonly memoryCounted: boolean
}

interface Instruction {
  readonly code: number
  readonly k: number
  /** Labels, or the next instruction when absent. */
  readonly yes?: Label
  readonly no?: Label
}
type Label = 'allow' | 'deny' | 'kill' | 'nosys' | 'family' | number

const LOAD = 0x20
const JUMP_EQUAL = 0x15
const JUMP_GREATER = 0x25
const JUMP_SET = 0x45
const RETURN = 0x06

// Offsets in struct seccomp_data; arguments are 64 bits of which the low half comes first.
const NUMBER = 0
const ARCHITECTURE = 4
const argument = (index: number): number => 16 + 8 * index

const ALLOW = 0x7fff0000
const KILL_PROCESS = 0x80000000
const errno = (value: number): number => 0x00050000 | value
const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

const AUDIT_ARCHITECTURE: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 }
const X32_BIT = 0x40000000
/** NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const CLONE_NEW = 0x7e020000
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
const AF_NETLINK = 16
const AF_ALLOWED = [1, 2, 10, AF_NETLINK] // UNIX, INET, INET6, and NETLINK for the list of interfaces
const NETLINK_ROUTE = 0
const SMALL_SEGMENT = 4096

const program = (architecture: Architecture, { memoryCounted }: FilterOptions): Instruction[] => {
  const calls = SYSCALLS[architecture]
  const denied = DENIED.flatMap(name => {
    const number = calls[name]
    return number === undefined ? [] : [{ code: JUMP_EQUAL, k: number, yes: 'deny' as const }]
  })
  const only = (call: keyof typeof calls & string, body: Instruction[]): Instruction[] => [
    { code: JUMP_EQUAL, k: calls[call]!, no: body.length },
    ...body,
  ]
  return [
    { code: LOAD, k: ARCHITECTURE },
    { code: JUMP_EQUAL, k: AUDIT_ARCHITECTURE[architecture], no: 'kill' },
    { code: LOAD, k: NUMBER },
    ...(architecture === 'x64' ? [{ code: JUMP_SET, k: X32_BIT, yes: 'nosys' as const }] : []),
    ...denied,
    // A filter cannot read the flags of clone3, which are in memory; glibc falls back to clone.
    { code: JUMP_EQUAL, k: calls.clone3!, yes: 'nosys' },
    ...(memoryCounted ? [] : [{ code: JUMP_EQUAL, k: calls.memfd_create!, yes: 'nosys' as const }]),
    // Small segments are allowed as locks (PostgreSQL); a namespace has at most 4096 segments.
    ...(memoryCounted
      ? []
      : only('shmget', [
          { code: LOAD, k: argument(1) + 4 },
          { code: JUMP_EQUAL, k: 0, no: 'nosys' },
          { code: LOAD, k: argument(1) },
          { code: JUMP_GREATER, k: SMALL_SEGMENT, yes: 'nosys', no: 'allow' },
        ])),
    ...only('clone', [
      { code: LOAD, k: argument(0) },
      { code: JUMP_SET, k: CLONE_NEW, yes: 'deny', no: 'allow' },
    ]),
    ...only('ioctl', [
      { code: LOAD, k: argument(1) },
      { code: JUMP_EQUAL, k: TIOCSTI, yes: 'deny' },
      { code: JUMP_EQUAL, k: TIOCLINUX, yes: 'deny', no: 'allow' },
    ]),
    // Reading the personality is harmless; changing it can disable address randomisation.
    ...only('personality', [
      { code: LOAD, k: argument(0) },
      { code: JUMP_EQUAL, k: 0, yes: 'allow' },
      { code: JUMP_EQUAL, k: 0xffffffff, yes: 'allow', no: 'deny' },
    ]),
    ...only('socket', [
      { code: LOAD, k: argument(0) },
      ...AF_ALLOWED.filter(family => family !== AF_NETLINK).map(family => ({
        code: JUMP_EQUAL,
        k: family,
        yes: 'allow' as const,
      })),
      { code: JUMP_EQUAL, k: AF_NETLINK, no: 'family' },
      { code: LOAD, k: argument(2) },
      { code: JUMP_EQUAL, k: NETLINK_ROUTE, yes: 'allow', no: 'family' },
    ]),
    ...only('socketpair', [
      { code: LOAD, k: argument(0) },
      { code: JUMP_EQUAL, k: 1, yes: 'allow', no: 'family' },
    ]),
  ]
}

const RETURNS = ['allow', 'deny', 'nosys', 'family', 'kill'] as const
const RETURN_VALUES: Record<(typeof RETURNS)[number], number> = {
  allow: ALLOW,
  deny: errno(EPERM),
  nosys: errno(ENOSYS),
  family: errno(EAFNOSUPPORT),
  kill: KILL_PROCESS,
}

/** Appends the return instructions and resolves labels to jump offsets. The program falls through to `allow`. */
const assemble = (body: Instruction[]): Buffer => {
  const all: Instruction[] = [...body, ...RETURNS.map(name => ({ code: RETURN, k: RETURN_VALUES[name] }))]
  const bytes = Buffer.alloc(all.length * 8)
  const distance = (label: Label | undefined, at: number): number => {
    if (label === undefined) return 0
    const steps = typeof label === 'number' ? label : body.length + RETURNS.indexOf(label) - at - 1
    if (steps > 255) throw new RangeError(`seccomp: a jump of ${steps} instructions is too far`)
    return steps
  }
  all.forEach((instruction, at) => {
    bytes.writeUInt16LE(instruction.code, at * 8)
    bytes.writeUInt8(distance(instruction.yes, at), at * 8 + 2)
    bytes.writeUInt8(distance(instruction.no, at), at * 8 + 3)
    bytes.writeUInt32LE(instruction.k >>> 0, at * 8 + 4)
  })
  return bytes
}
