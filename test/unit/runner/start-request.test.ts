import { describe, expect, it } from 'vitest'
import { argvElsewhere } from '../../../src/runner/start-request.ts'

describe('a command on a machine with a system of its own', () => {
  it('names a program that was found on this computer, without its path', () => {
    const claude = '/home/me/.local/bin/claude'
    expect(argvElsewhere({ argv: [claude, '-p', '/x/y'], programs: [claude] })).toEqual([
      'claude',
      '-p',
      '/x/y',
    ])
  })

  it('keeps a path that the user wrote', () => {
    expect(argvElsewhere({ argv: ['/opt/tool', '/x/y'], programs: [] })).toEqual(['/opt/tool', '/x/y'])
    expect(argvElsewhere({ argv: ['bin/tool'], programs: ['/usr/bin/node'] })).toEqual(['bin/tool'])
  })
})
