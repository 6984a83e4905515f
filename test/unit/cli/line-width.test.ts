import { describe, expect, it } from 'vitest'
import { COMMANDS, loadCommand } from '../../../src/cli/commands/all-commands.ts'
import { doctorReport } from '../../../src/cli/doctor-report.ts'
import { commandHelp, overview } from '../../../src/cli/help-text.ts'
import { describeJob } from '../../../src/cli/job-details.ts'
import { chooseColors } from '../../../src/cli/terminal/colors.ts'
import { fact } from '../../../src/cli/terminal/fact.ts'
import { lineWidth } from '../../../src/cli/terminal/wrap.ts'
import type { JobView } from '../../../src/engine/deputy.ts'

const WIDTH = 80
const colors = chooseColors({ env: {}, isTTY: false, off: true })
const tooLong = (text: string): string[] => text.split('\n').filter(line => line.length > WIDTH)

const JOB = {
  job_id: '01a1e469-08fe-79fc-9d10-b328c37c1348',
  status: 'failed',
  task: 'word '.repeat(40).trim(),
  agent: 'script',
  runtime: 'sandbox',
  machine_id: null,
  progress: null,
  queue_position: null,
  created_at: '2026-01-01T00:00:00.000Z',
  origin: 'cli',
  duration_seconds: 1,
  timeout_seconds: 60,
  phases: { provisioning: 280, boot: 15, run: 6, collect: 85, destroy: 52 },
  attempts: 1,
  output_bytes: 0,
  labels: {},
  cancel_requested: false,
  completed_at: '2026-01-01T00:00:01.000Z',
  exit_code: 1,
  signal: null,
  error: { code: 'internal', message: 'a sentence of several words '.repeat(5).trim() },
} as unknown as JobView

describe('on a terminal of 80 columns', () => {
  it('the list of commands fits', () => {
    expect(tooLong(overview(colors))).toEqual([])
  })

  it.each(Object.keys(COMMANDS))('the help of %s fits', async name => {
    const command = await loadCommand(name)
    expect(tooLong(commandHelp(command!, colors, WIDTH))).toEqual([])
  })

  it('the facts of a job break between words, and nothing is lost', () => {
    const text = describeJob(JOB, colors, WIDTH)
    expect(tooLong(text)).toEqual([])
    expect(text.replace(/\s+/g, ' ')).toContain(JOB.task)
    expect(fact('limit', `${'a '.repeat(40)}end`, colors, WIDTH)).toMatch(/^limit {5}a .*a\n {10}a .*end\n$/)
  })

  it('the messages of doctor break between words, and fixes stay whole', () => {
    const message = 'listens on several addresses '.repeat(6).trim()
    const fix = `sudo ${'option '.repeat(20).trim()}`
    const check = { name: 'daemon', status: 'warning' as const, message, fix }
    const lines = doctorReport([check], [], colors, WIDTH).split('\n')
    expect(lines.filter(line => line.length > WIDTH)).toEqual([`    fix: ${fix}`])
  })

  it('a pipe gets whole lines', () => {
    expect(lineWidth({ isTTY: false, columns: WIDTH })).toBe(Number.POSITIVE_INFINITY)
    expect(lineWidth({ isTTY: true, columns: WIDTH })).toBe(WIDTH)
  })
})
