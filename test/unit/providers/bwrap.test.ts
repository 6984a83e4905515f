import { describe, expect, it } from 'vitest'
import { bwrapCall } from '../../../src/providers/sandbox/bwrap.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 512 * MIB, disk: 64 * MIB, cpu: 1, processes: 64 }

describe('the arguments of bubblewrap', () => {
  const call = bwrapCall({
    mounts: [{ kind: 'text', text: 'x', target: '/etc/x' }],
    topMounts: [],
    limits: LIMITS,
    hostNetwork: false,
    disableUserns: true,
    diskDir: null,
    firstFd: 6,
    seccomp: Buffer.from('bpf'),
  })
  const args = call.fdContents[0]!.toString().split('\0')

  it('remounts the root read-only last', () => {
    const binds = args.lastIndexOf('--tmpfs')
    expect(args.lastIndexOf('--remount-ro')).toBeGreaterThan(binds)
    expect(args.slice(args.lastIndexOf('--remount-ro'), args.lastIndexOf('--remount-ro') + 2)).toEqual([
      '--remount-ro',
      '/',
    ])
  })

  it('are not on the command line', () => {
    expect(call.args).toEqual(['--args', '6'])
    expect(args).toContain('--clearenv')
    expect(call.fdContents[Number(args[args.indexOf('--ro-bind-data') + 1]) - 6]!.toString()).toBe('x')
    expect(call.fdContents[Number(args[args.indexOf('--seccomp') + 1]) - 6]!.toString()).toBe('bpf')
  })
})
