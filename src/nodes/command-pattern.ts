import { baseName } from './policy/wrappers.ts'

/**
 * Whether a command matches a pattern such as `git push --force`: the first word is the program, and the other words
 * occur among its arguments in this order.
 */
export const matchesPattern = (argv: readonly string[], pattern: string): boolean => {
  const [program, ...words] = pattern.trim().split(/\s+/)
  if (program !== '*' && baseName(argv[0] ?? '') !== baseName(program!)) return false
  let at = 1
  for (const word of words) {
    const found = argv.findIndex(
      (arg, index) => index >= at && (word === '*' || arg === word || isFlagIn(word, arg)),
    )
    if (found < 0) return false
    at = found + 1
  }
  return true
}

/** Finds a short flag among combined ones: `-r` matches `-rn`. */
const isFlagIn = (word: string, arg: string): boolean =>
  /^-[A-Za-z]$/.test(word) && /^-[A-Za-z]+$/.test(arg) && arg.includes(word[1]!)
