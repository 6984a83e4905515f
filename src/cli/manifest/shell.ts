import { quoteIfNeeded } from '../../runner/shell-words.ts'

/** `'make && make test'` as a single word can only be meant for a shell: no program is called that. */
export const looksLikeScript = (word: string): boolean => /[\s;&|<>$`*?(){}!"'\\]/.test(word)

/** An argument list as a line a shell would read back the same, for people to read. */
export const quoteArgv = (argv: readonly string[]): string => argv.map(quoteIfNeeded).join(' ')
