import { describe, expect, it } from 'vitest'
import { doctorReport } from '../../../src/cli/doctor-report.ts'
import { chooseColors } from '../../../src/cli/terminal/colors.ts'
import type { Check, Readiness } from '../../../src/ports.ts'

const colors = chooseColors({ env: {}, isTTY: false, off: true })
const report = (runtimes: readonly Readiness[], checks: readonly Check[] = []): string =>
  doctorReport(checks, runtimes, colors, 80)

const ok = (name: string, message = 'fine'): Check => ({ name, status: 'ok', message })
const ready = (runtime: string, ...checks: Check[]): Readiness => ({ runtime, ready: true, checks })

describe('what doctor prints', () => {
  it('gives a fix of several lines as lines that can be copied', () => {
    const fix = 'To see it:\npveum role add X\npveum acl modify / --roles X'
    const text = report([ready('proxmox', { name: 'rights', status: 'warning', message: 'missing', fix })])
    expect(text).toContain(
      '  ! rights: missing\n    fix:\n      To see it:\n      pveum role add X\n      pveum acl modify / --roles X\n',
    )
    expect(text).not.toContain('^J')
  })

  it('keeps a fix of one line beside its word, and shows what would command the terminal', () => {
    const check: Check = { name: 'daemon', status: 'failed', message: 'a\nb', fix: 'do \u001b[2J this' }
    expect(report([], [check])).toContain('  ✗ daemon: a\n      b\n    fix: do ^[[2J this\n')
  })

  it('tells once what runtimes on the same machines find alike', () => {
    const text = report([
      ready('sandbox', ok('sandbox')),
      ready('ssh', ok('node n1'), ok('node n2'), { name: 'machine', status: 'warning', message: 'left' }),
      ready('node', ok('node n1'), ok('node n2'), ok('its own')),
    ])
    expect(text).toContain('ssh, node ready\n')
    expect(text.match(/node n1/g)).toHaveLength(1)
    expect(text).toContain('its own')
    expect(text).toContain('Jobs can run: sandbox, ssh, node.')
  })

  it('names the ways to machines that are not taken yet, and only those', () => {
    expect(report([ready('sandbox', ok('x'))])).toMatch(
      /Not set up: microvm, .*deputy microvm setup\nNot set up: proxmox, .*deputy proxmox --help\nNot set up: ssh, .*deputy nodes add/,
    )
    const all = report([ready('proxmox', ok('x')), ready('ssh', ok('y')), ready('microvm', ok('z'))])
    expect(all).not.toContain('Not set up')
    // Without a daemon there is other trouble first.
    expect(report([])).not.toContain('Not set up')
  })
})
