import { describe, expect, it } from 'vitest'
import { parseArgs } from '../../../src/cli/args/parse.ts'
import { thrownError } from '../../support/thrown-error.ts'

const FLAGS = {
  timeout: { type: 'duration', short: 't', summary: '' },
  env: { type: 'list', short: 'e', summary: '' },
  follow: { type: 'boolean', short: 'f', summary: '' },
  quiet: { type: 'boolean', short: 'q', summary: '' },
  limit: { type: 'number', short: 'n', summary: '' },
  state: { type: 'string', choices: ['on', 'off'], summary: '' },
} as const

const parse = (argv: string[], stop = false) =>
  parseArgs({ flags: FLAGS, argv, command: 'x', stopAt: () => stop })

const failure = (argv: string[]) => thrownError(() => parse(argv))

describe('arguments', () => {
  it('passes everything after -- on exactly, flags and further dashes included', () => {
    const { flags, args, rest } = parse([
      '--timeout',
      '5',
      '--',
      'sh',
      '-c',
      'echo "$1"',
      '--',
      '--timeout',
      '',
    ])
    expect(flags.timeout).toBe(5)
    expect(args).toEqual([])
    expect(rest).toEqual(['sh', '-c', 'echo "$1"', '--', '--timeout', ''])
  })

  it('tells an empty command after -- from no -- at all', () => {
    expect(parse(['--']).rest).toEqual([])
    expect(parse([]).rest).toBeUndefined()
  })

  it('takes values with a space, with = and glued to a short flag', () => {
    expect(parse(['--timeout=5m']).flags.timeout).toBe(300)
    expect(parse(['-t', '2h']).flags.timeout).toBe(7200)
    expect(parse(['-n5']).flags.limit).toBe(5)
    expect(parse(['-n=5']).flags.limit).toBe(5)
    expect(parse(['-fqn', '-3']).flags).toMatchObject({ follow: true, quiet: true, limit: -3 })
  })

  it('keeps = and spaces inside values, and gathers lists in order', () => {
    expect(parse(['-e', 'A=b=c d', '--env=X=', '--env', 'Y']).flags.env).toEqual(['A=b=c d', 'X=', 'Y'])
  })

  it('mixes flags and words unless the first word begins a foreign command', () => {
    expect(parse(['a', '-f', 'b'])).toMatchObject({ flags: { follow: true }, args: ['a', 'b'] })
    expect(parse(['-q', 'make', '-f', 'x', '--', 'y'], true)).toMatchObject({
      flags: { follow: false, quiet: true },
      args: ['make', '-f', 'x', '--', 'y'],
      rest: undefined,
    })
  })

  it('takes a lone dash for a word', () => {
    expect(parse(['-']).args).toEqual(['-'])
  })

  it('names the nearest flag for an unknown one', () => {
    const error = failure(['--timout', '5'])
    expect(error.message).toBe("Unknown flag --timout, did you mean '--timeout'?")
    expect(error.exitStatus).toBe(2)
    expect(error.hint).toBe('deputy x --help')
  })

  it.each([
    [['-z'], 'Unknown flag -z.'],
    [['--follow=yes'], '--follow takes no value.'],
    [['--timeout'], '--timeout needs a value: --timeout VALUE.'],
    [['--timeout', '--', 'x'], '--timeout needs a value: --timeout VALUE.'],
    [['--timeout', 'soon'], "--timeout needs a time such as 90, 90s, 5m or 2h, not 'soon'."],
    [['--limit', 'many'], "--limit needs a number, not 'many'."],
    [['--limit='], "--limit needs a number, not ''."],
    [['--state', 'offf'], "--state is one of on, off, not 'offf', did you mean 'off'?"],
    [['--__proto__', 'x'], 'Unknown flag --__proto__.'],
    [['--constructor'], 'Unknown flag --constructor.'],
  ])('refuses %j', (argv, message) => {
    expect(failure(argv).message).toBe(message)
  })
})
