import type { Refusal } from './rules.ts'

/** One resolved simple command, as the rules see it. */
export interface Call {
  name: string
  args: readonly string[]
  cwds: readonly string[]
}

export type Check = (call: Call) => Refusal | undefined

export const operands = (args: readonly string[]): string[] => {
  const end = args.indexOf('--')
  const before = end < 0 ? args : args.slice(0, end)
  const after = end < 0 ? [] : args.slice(end + 1)
  return [...before.filter(arg => !arg.startsWith('-') || arg === '-'), ...after]
}

/** Options before `--`; GNU tools take any unambiguous beginning of a long one. */
export const hasOption = (args: readonly string[], letters: string, long: string): boolean => {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some(arg =>
    arg.startsWith('--') ? arg.length > 3 && long.startsWith(arg.split('=')[0]!) : isLetters(arg, letters),
  )
}

const isLetters = (arg: string, letters: string): boolean =>
  arg.startsWith('-') && [...letters].some(letter => arg.slice(1).includes(letter))

export const first = <T>(
  items: readonly T[],
  find: (item: T) => Refusal | undefined,
): Refusal | undefined => {
  for (const item of items) {
    const refusal = find(item)
    if (refusal) return refusal
  }
  return undefined
}

/** What cp, mv, ln and install take, and where to: the last word, or what `-t` names. */
export const transfer = (args: readonly string[]): { sources: string[]; target: string | undefined } => {
  const at = args.findIndex(arg => /^-(?!-)\w*t$|^--target-d[a-z-]*$/.test(arg))
  const inline = args.find(arg => /^--target-d[a-z-]*=/.test(arg))
  if (inline !== undefined) return { sources: operands(args), target: inline.slice(inline.indexOf('=') + 1) }
  if (at >= 0) return { sources: operands(args.toSpliced(at, 2)), target: args[at + 1] }
  const words = operands(args)
  return { sources: words.slice(0, -1), target: words.at(-1) }
}
