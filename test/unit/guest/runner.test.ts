import { execFileSync, spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { RUNNER } from '../../../src/guest/runner.ts'

const has = (tool: string): boolean => spawnSync('sh', ['-c', `command -v ${tool}`]).status === 0

describe('the program for a guest', () => {
  for (const shell of ['dash', 'bash', 'busybox'])
    it.skipIf(!has(shell))(`is one that ${shell} accepts (skipped where it is not installed)`, () => {
      execFileSync(shell, shell === 'busybox' ? ['sh', '-n'] : ['-n'], { input: RUNNER })
    })

  it.skipIf(!has('shellcheck'))('gives shellcheck nothing to say (skipped where it is not installed)', () => {
    const { stdout } = spawnSync('shellcheck', ['--shell=sh', '-'], { input: RUNNER, encoding: 'utf8' })
    expect(stdout).toBe('')
  })

  it('is one file whose first line names its shell and whose pieces keep no mark of where they came from', () => {
    expect(RUNNER.startsWith('#!/bin/sh\n')).toBe(true)
    expect(RUNNER).not.toContain('\\${')
    expect(RUNNER).not.toMatch(/\n\n\n/)
  })
})
