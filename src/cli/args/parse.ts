import { parseDuration } from '../../jobs/durations.ts'
import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import type { FlagSpec, FlagSpecs, FlagValues, Parsed } from './spec.ts'

export interface ParseOptions<F extends FlagSpecs> {
  readonly flags: F
  readonly argv: readonly string[]
  /** Whether a word ends our flags: it and the following words are the command to run. */
  readonly stopAt?: (word: string, place: number) => boolean
  /** For the hint of an error. */
  readonly command: string
}

/** Reads an argument list. Anything unknown is an error that names the nearest flag. */
export const parseArgs = <F extends FlagSpecs>(options: ParseOptions<F>): Parsed<F> => {
  const { flags, stopAt = () => false, command } = options
  const values: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(flags)) values[name] = initial(spec)
  const args: string[] = []
  const queue = [...options.argv]

  const take = (name: string, shown: string, inline: string | undefined): void => {
    const spec = Object.hasOwn(flags, name) ? flags[name] : undefined
    if (!spec) throw unknownFlag(shown, flags, command)
    if (spec.type === 'boolean') {
      if (inline !== undefined) throw usage(`${shown} takes no value.`, command)
      values[name] = true
      return
    }
    const text = inline ?? queue.shift()
    if (text === undefined || (inline === undefined && text === '--'))
      throw usage(`${shown} needs a value: ${shown} ${spec.value ?? 'VALUE'}.`, command)
    const value = convert(spec, shown, text, command)
    if (spec.type === 'list') values[name] = [...(values[name] as string[]), value]
    else values[name] = value
  }

  while (queue.length > 0) {
    const word = queue.shift()!
    if (word === '--') return { flags: values as FlagValues<F>, args, rest: queue }
    if (word.startsWith('--')) {
      const [name, inline] = splitOnce(word.slice(2))
      take(name, `--${name}`, inline)
    } else if (word.startsWith('-') && word.length > 1) takeShort(word)
    else {
      args.push(word)
      if (!stopAt(word, args.length - 1)) continue
      // `deputy run make -- -j2`: a `--` after the command belongs to the command.
      args.push(...queue.splice(0))
    }
  }
  return { flags: values as FlagValues<F>, args, rest: undefined }

  /** Parses `-f`, `-n5`, `-n 5`, `-n=5`, combined switches (`-qf`), and short names of two letters (`-it`). */
  function takeShort(word: string): void {
    const whole = Object.keys(flags).find(key => flags[key]?.short === word.slice(1))
    if (word.length > 2 && whole !== undefined) {
      take(whole, word, undefined)
      return
    }
    for (let i = 1; i < word.length; i++) {
      const letter = word[i]!
      const name = Object.keys(flags).find(key => flags[key]?.short === letter)
      if (name === undefined) throw unknownFlag(`-${letter}`, flags, command)
      if (flags[name]?.type === 'boolean') {
        take(name, `-${letter}`, undefined)
        continue
      }
      const inline = word.slice(i + 1).replace(/^=/, '')
      take(name, `-${letter}`, inline === '' ? undefined : inline)
      return
    }
  }
}

export const usage = (message: string, command: string): AppError =>
  new AppError('invalid', message, { hint: `deputy ${command}${command ? ' ' : ''}--help` })

/** `verb` is what the user typed in place of one of `verbs`. */
export const unknownSubcommand = (
  command: string,
  verb: string | undefined,
  verbs: readonly string[],
): AppError => {
  const known = `Use ${verbs.slice(0, -1).join(', ')} or ${verbs.at(-1)}.`
  if (verb === undefined) return usage(`No subcommand given. ${known}`, command)
  return usage(`Unknown subcommand '${command} ${verb}'${didYouMean(verb, verbs) || `. ${known}`}`, command)
}

const unknownFlag = (shown: string, flags: FlagSpecs, command: string): AppError => {
  const guess = didYouMean(
    shown,
    Object.keys(flags).map(name => `--${name}`),
  )
  return usage(`Unknown flag ${shown}${guess || '.'}`, command)
}

const initial = (spec: FlagSpec): unknown => {
  if (spec.type === 'boolean') return false
  return spec.type === 'list' ? [] : undefined
}

const convert = (spec: FlagSpec, shown: string, text: string, command: string): string | number => {
  if (spec.choices && !spec.choices.includes(text))
    throw usage(
      `${shown} is one of ${spec.choices.join(', ')}, not '${text}'${didYouMean(text, spec.choices) || '.'}`,
      command,
    )
  if (spec.type === 'number') {
    const value = Number(text)
    if (text.trim() === '' || !Number.isFinite(value))
      throw usage(`${shown} needs a number, not '${text}'.`, command)
    return value
  }
  return spec.type === 'duration' ? seconds(shown, text, command) : text
}

const seconds = (shown: string, text: string, command: string): number => {
  const value = parseDuration(text)
  if (value === undefined)
    throw usage(`${shown} needs a time such as 90, 90s, 5m or 2h, not '${text}'.`, command)
  return value
}

const splitOnce = (text: string): [string, string | undefined] => {
  const at = text.indexOf('=')
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}
