import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { encodeSpec } from '../../../src/guest/order-format.ts'
import { COMMAND, RUNNER } from '../../../src/guest/runner.ts'
import { has } from '../../support/has.ts'

describe('the program for a guest', () => {
  for (const shell of ['dash', 'bash', 'busybox'])
    it.skipIf(!has(shell))(`is one that ${shell} accepts (skipped where it is not installed)`, () => {
      execFileSync(shell, shell === 'busybox' ? ['sh', '-n'] : ['-n'], { input: RUNNER })
    })

  it.skipIf(!has('shellcheck'))('gives shellcheck nothing to say (skipped where it is not installed)', () => {
    const { stdout } = spawnSync('shellcheck', ['--shell=sh', '-'], { input: RUNNER, encoding: 'utf8' })
    expect(stdout).toBe('')
  })

  const hostile = [
    ...[
      '',
      ' ',
      '  a  b  ',
      '\t',
      '\n',
      '\n\n',
      'a\nb\n',
      '+',
      '+\n+',
      '=',
      '==',
      'end',
      'a\nend',
      'a\n+end\n',
    ],
    ...[
      'arg =x',
      'a\narg =x',
      'a\nenv A =x',
      '-',
      '-n',
      '--',
      '*',
      '\\',
      '\\n',
      'a\\\nb',
      '%s',
      "a'b",
      'a"b',
    ],
    ...['$(id)', '`id`', '$HOME', '${x#', 'a;b', 'ünï→😀', 'Ёあ', '\r', 'a\r\n', '\x7f', '\x01', 'YQ=='],
    ...['x'.repeat(4096), 'y'.repeat(4097), 'line\n'.repeat(800), 'ü'.repeat(5000)],
  ]

  /** What a command gets to see of its arguments when this shell reads the order. */
  const read = (shell: string, values: readonly string[], path = process.env.PATH) => {
    const order = encodeSpec({
      jobId: 'j',
      argv: ['/usr/bin/printf', '%s\\0', ...values],
      env: {},
      secrets: {},
      timeoutSeconds: 1,
      graceSeconds: 1,
      heartbeatSeconds: 1,
      inputs: ['workspace'],
      wantsFiles: false,
      continues: false,
      outlivesJob: false,
    })
    const args = [...(shell === 'busybox' ? ['sh'] : []), '-c', `${COMMAND}\neval "$job_script"`]
    const env = { HOME: '/', PATH: path, LANG: 'C.UTF-8' }
    return spawnSync(`/bin/${shell}`, args, { input: order, encoding: 'utf8', env }).stdout
  }

  for (const shell of ['dash', 'bash', 'busybox'])
    it.skipIf(!existsSync(`/bin/${shell}`))(
      `reads every value as it was meant, with ${shell} (skipped where it is not installed)`,
      () => {
        expect(read(shell, hostile)).toBe(hostile.map(value => `${value}\0`).join(''))
      },
    )

  it('reads plain values without a program', () => {
    const plain = [
      '',
      ' a  b\t',
      'if true; then\n  echo "$HOME" \'x\'\nfi\n',
      '{"a": [1, 2]}',
      '~!@#$%^&*()_+|<>?',
    ]
    expect(read('sh', plain, '/nowhere')).toBe(plain.map(value => `${value}\0`).join(''))
  })

  it('is one file whose first line names its shell and whose pieces keep no mark of where they came from', () => {
    expect(RUNNER.startsWith('#!/bin/sh\n')).toBe(true)
    expect(RUNNER).not.toContain('\\${')
    expect(RUNNER).not.toMatch(/\n\n\n/)
  })
})
