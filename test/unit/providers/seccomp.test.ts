import { describe, expect, it } from 'vitest'
import { seccompFilter } from '../../../src/providers/sandbox/seccomp.ts'
import { DENIED, SYSCALLS } from '../../../src/providers/sandbox/syscalls.ts'

/** The part of the kernel's machine that the filter uses. */
const evaluate = (program: Buffer, data: { nr: number; arch: number; args?: readonly number[] }): number => {
  const input = Buffer.alloc(64)
  input.writeUInt32LE(data.nr >>> 0, 0)
  input.writeUInt32LE(data.arch, 4)
  ;(data.args ?? []).forEach((value, index) => {
    input.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), 16 + 8 * index)
  })
  let accumulator = 0
  for (let at = 0; at < program.length / 8; at++) {
    const code = program.readUInt16LE(at * 8)
    const k = program.readUInt32LE(at * 8 + 4)
    const jump = (yes: boolean) => program.readUInt8(at * 8 + (yes ? 2 : 3))
    if (code === 0x20) accumulator = input.readUInt32LE(k)
    else if (code === 0x15) at += jump(accumulator === k)
    else if (code === 0x25) at += jump(accumulator > k)
    else if (code === 0x45) at += jump((accumulator & k) !== 0)
    else if (code === 0x06) return k
    else throw new Error(`unknown instruction ${code}`)
  }
  throw new Error('fell off the end')
}

const ALLOW = 0x7fff0000
const EPERM = 0x00050001
const ENOSYS = 0x00050026
const EAFNOSUPPORT = 0x00050061
const KILL = 0x80000000

describe.each([
  { architecture: 'x64', arch: 0xc000003e, other: 0x40000003, getpid: 39 },
  { architecture: 'arm64', arch: 0xc00000b7, other: 0x40000028, getpid: 172 },
] as const)('the seccomp filter for $architecture', ({ architecture, arch, other, getpid }) => {
  const program = seccompFilter({ memoryCounted: true }, architecture)!
  const calls = SYSCALLS[architecture]
  const judge = (name: string, ...args: number[]) => evaluate(program, { nr: calls[name]!, arch, args })

  it('denies every call of the list that the architecture has', () => {
    for (const name of DENIED) if (calls[name] !== undefined) expect(judge(name), name).toBe(EPERM)
  })

  it('allows the rest', () => {
    const special = new Set(Object.values(calls))
    for (let nr = 0; nr < 460; nr++)
      if (!special.has(nr)) expect(evaluate(program, { nr, arch }), String(nr)).toBe(ALLOW)
    expect(evaluate(program, { nr: getpid, arch })).toBe(ALLOW)
  })

  it('denies memory that belongs to no process if the kernel does not count it', () => {
    const strict = seccompFilter({ memoryCounted: false }, architecture)!
    const call = (name: string, ...args: number[]) => evaluate(strict, { nr: calls[name]!, arch, args })
    expect(judge('memfd_create', 0, 0)).toBe(ALLOW)
    expect(judge('shmget', 0, 1e9)).toBe(ALLOW)
    expect(call('memfd_create', 0, 0)).toBe(ENOSYS)
    expect(call('shmget', 0, 4097)).toBe(ENOSYS)
    expect(call('shmget', 0, 2 ** 32 + 1)).toBe(ENOSYS)
    expect(call('shmget', 0, 56)).toBe(ALLOW)
    expect(call('clone', 17)).toBe(ALLOW)
  })

  it('kills calls of another architecture', () => {
    expect(evaluate(program, { nr: getpid, arch: other })).toBe(KILL)
  })

  it('allows processes and threads, but no namespaces', () => {
    expect(judge('clone', 0x3d0f00)).toBe(ALLOW)
    expect(judge('clone', 17)).toBe(ALLOW)
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
      expect(judge('clone', flag | 17)).toBe(EPERM)
    expect(judge('clone3')).toBe(ENOSYS)
  })

  it('filters sockets by family, and netlink by protocol', () => {
    for (const family of [1, 2, 10]) expect(judge('socket', family, 1, 0)).toBe(ALLOW)
    expect(judge('socket', 16, 3, 0)).toBe(ALLOW)
    expect(judge('socket', 16, 3, 12)).toBe(EAFNOSUPPORT)
    for (const family of [17, 31, 38, 40, 44])
      expect(judge('socket', family, 1, 0), String(family)).toBe(EAFNOSUPPORT)
    expect(judge('socketpair', 1)).toBe(ALLOW)
    expect(judge('socketpair', 40)).toBe(EAFNOSUPPORT)
  })

  it('checks the half of an argument that the kernel uses', () => {
    expect(judge('ioctl', 0, 0x5412)).toBe(EPERM)
    expect(judge('ioctl', 0, 0x5412 + 2 ** 32)).toBe(EPERM)
    expect(judge('ioctl', 0, 0x5413)).toBe(ALLOW)
    expect(judge('personality', 0xffffffff)).toBe(ALLOW)
    expect(judge('personality', 0x40000)).toBe(EPERM)
  })

  it('is small', () => {
    expect(program.length / 8).toBeLessThan(200)
  })
})

describe('the seccomp filter', () => {
  it('refuses the x32 variants of calls', () => {
    expect(
      evaluate(seccompFilter({ memoryCounted: true }, 'x64')!, { nr: 0x40000000 + 101, arch: 0xc000003e }),
    ).toBe(ENOSYS)
  })

  it('is absent for an architecture it does not know', () => {
    expect(seccompFilter({ memoryCounted: true }, 'riscv64')).toBeUndefined()
  })
})
