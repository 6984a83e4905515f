import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseColors } from '../../../src/cli/terminal/colors.ts'
import { duration, phases } from '../../../src/cli/terminal/format.ts'
import { createSafeOutput } from '../../../src/cli/terminal/safe-output.ts'
import { table } from '../../../src/cli/terminal/table.ts'
import { oneLine, visible } from '../../../src/jobs/visible-text.ts'

const safe = (text: string, colors = true): string => {
  const output = createSafeOutput({ colors })
  return output.push(new TextEncoder().encode(text)) + output.end()
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come through
const DANGEROUS = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b(?!\[[0-9;:]*m)/

describe('output on a terminal', () => {
  it('shows control sequences instead of obeying them, and keeps colours', () => {
    expect(safe('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x08\x9b1A')).toBe(
      '\x1b[31mred\x1b[0m ^[]0;title^G ^[[2J^H<U+009B>1A\x1b[0m',
    )
  })

  it('drops colours where there are none', () => {
    expect(safe('\x1b[31mred\x1b[0m', false)).toBe('red')
  })

  it('turns a lone carriage return into a new line, so that nothing is overwritten', () => {
    expect(safe('50%\r100%\r\ndone\r', false)).toBe('50%\n100%\ndone\n')
  })

  it('lets nothing dangerous through however the bytes are cut', () => {
    const nasty = fc.array(
      fc.oneof(
        fc.constantFrom(
          '\x1b',
          '[',
          '0',
          ';',
          'm',
          'J',
          ']',
          '\x07',
          '\r',
          '\n',
          '\x9b',
          '\u202e',
          '😀',
          'a',
        ),
        fc.string({ maxLength: 3 }),
      ),
      { maxLength: 40 },
    )
    fc.assert(
      fc.property(nasty, fc.array(fc.nat(200)), (parts, cuts) => {
        const bytes = new TextEncoder().encode(parts.join(''))
        const output = createSafeOutput({ colors: true })
        const points = [...new Set([0, ...cuts.map(cut => cut % (bytes.length + 1)), bytes.length])]
        points.sort((a, b) => a - b)
        let text = ''
        for (let i = 1; i < points.length; i++) text += output.push(bytes.subarray(points[i - 1], points[i]))
        text += output.end()
        expect(text).not.toMatch(DANGEROUS)
        expect(text).toBe(safe(parts.join('')))
      }),
    )
  })

  it('holds no unbounded text back', () => {
    const output = createSafeOutput({ colors: true })
    expect(output.push(new TextEncoder().encode(`\x1b[${'1;'.repeat(500)}`)).length).toBeGreaterThan(900)
  })
})

describe('one line of foreign text', () => {
  it('has no control characters and no changes of direction', () => {
    expect(visible('a\x1b[2Jb\u202ec\nd')).toBe('a^[[2Jb<U+202E>c^Jd')
    expect(oneLine('  many\n words  here ', 10)).toBe('many word…')
  })
})

describe('a table', () => {
  it('lines up, cuts what is too long and is not broken by what jobs are called', () => {
    const rows = [
      { id: 'a', task: 'evil\nname \x1b[31m' },
      { id: 'bb', task: 'x'.repeat(100) },
    ]
    const columns = [
      { title: 'ID', value: (row: (typeof rows)[number]) => row.id, align: 'right' as const },
      { title: 'TASK', value: (row: (typeof rows)[number]) => row.task, rest: true },
    ]
    const lines = table(rows, columns, { width: 30, heading: text => text }).split('\n')
    expect(lines).toEqual(['ID  TASK', ' a  evil^Jname ^[[31m', `bb  ${'x'.repeat(25)}…`, ''])
  })
})

describe('colours', () => {
  const enabled = (env: NodeJS.ProcessEnv, isTTY: boolean) => chooseColors({ env, isTTY }).enabled
  it('follow the terminal, NO_COLOR, FORCE_COLOR and TERM', () => {
    expect(enabled({}, true)).toBe(true)
    expect(enabled({}, false)).toBe(false)
    expect(enabled({ NO_COLOR: '1' }, true)).toBe(false)
    expect(enabled({ NO_COLOR: '' }, true)).toBe(true)
    expect(enabled({ NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false)
    expect(enabled({ FORCE_COLOR: '1' }, false)).toBe(true)
    expect(enabled({ FORCE_COLOR: '0' }, true)).toBe(false)
    expect(enabled({ TERM: 'dumb' }, true)).toBe(false)
  })
})

it.each([
  [null, '–'],
  [0.341, '0.34 s'],
  [12.34, '12.3 s'],
  [75, '1m 15s'],
  [7260, '2h 1m'],
])('writes %s seconds as %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text)
})

it('the time of the command is told once, as its machine measured it where it did', () => {
  expect(phases({ clone: 1500, run: 39, running: 41 })).toBe('clone 1.50 s, run 39 ms')
  expect(phases({ running: 41 })).toBe('running 41 ms')
})
