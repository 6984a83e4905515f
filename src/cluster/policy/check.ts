import { AppError } from '../../jobs/errors.ts'
import { interpret } from './interpret.ts'
import { Refused } from './interpreter.ts'
import { judge, type Refusal } from './rules.ts'
import { createScope } from './scope.ts'
import { baseName } from './text.ts'

/** A rule of the user's: refuse a program, and only with these words among its arguments, in this order. */
export interface DenyRule {
  name: string
  /** `terraform destroy`, `git push --force`; `*` stands for any one word. */
  command: string
  reason?: string | undefined
}

export interface PolicyOptions {
  /** The command would run as root on the node. */
  root?: boolean
  env?: Readonly<Record<string, string>>
  cwd?: string
  deny?: readonly DenyRule[]
  /** Built-in rules that do not apply. */
  disable?: readonly string[]
}

export type Verdict = { allowed: true } | ({ allowed: false } & Refusal)

/**
 * Reads a command as bash would and says whether it may run. A seat belt against accidents, not a wall against
 * malice: what must not be able to hurt a machine belongs into an isolated runtime.
 */
export const checkCommand = (source: string, options: PolicyOptions = {}): Verdict => {
  const disabled = new Set(options.disable)
  const refusal = find(source, options, disabled)
  return refusal ? { allowed: false, ...refusal } : { allowed: true }
}

export const assertAllowed = (source: string, options: PolicyOptions = {}): void => {
  if (source.trim() === '')
    throw new AppError('invalid', 'the command is empty', { hint: 'Give a command to run.' })
  const verdict = checkCommand(source, options)
  if (verdict.allowed) return
  throw new AppError(
    'denied',
    `the command policy refused this by rule "${verdict.rule}": ${verdict.reason}`,
    {
      hint: 'Run it in an isolated machine instead (submit_job), or change cluster.policy in the configuration.',
      details: { rule: verdict.rule },
    },
  )
}

const find = (source: string, options: PolicyOptions, disabled: ReadonlySet<string>): Refusal | undefined => {
  const enabled = (refusal: Refusal | undefined): Refusal | undefined =>
    refusal && disabled.has(refusal.rule) ? undefined : refusal
  if (source.includes('\0')) return enabled({ rule: 'nul-byte', reason: 'a command cannot hold a NUL byte' })
  const scope = createScope({ root: options.root ?? false, env: options.env ?? {}, cwd: options.cwd })
  try {
    interpret(source, scope, {
      command: (argv, here) =>
        byUser(argv, options.deny ?? []) ?? judge({ argv, cwds: here.cwds, root: here.root }),
      enabled: rule => !disabled.has(rule),
      wary: true,
    })
    return undefined
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return enabled(explainMissing(error.refusal, scope.missing))
  }
}

const byUser = (argv: readonly string[], rules: readonly DenyRule[]): Refusal | undefined => {
  const rule = rules.find(candidate => matchesWords(argv, candidate.command))
  return rule && { rule: rule.name, reason: rule.reason ?? `"${rule.command}" is not allowed here` }
}

/** The program is the first word; the others must follow in order, with anything between them. */
export const matchesWords = (argv: readonly string[], pattern: string): boolean => {
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

/** `-r` is in `-rn`. */
const isFlagIn = (word: string, arg: string): boolean =>
  /^-[A-Za-z]$/.test(word) && /^-[A-Za-z]+$/.test(arg) && arg.includes(word[1]!)

/** Most accidents of this kind are a variable nobody set; saying so is the help that is needed. */
const explainMissing = (refusal: Refusal, missing: ReadonlySet<string>): Refusal => {
  const names = [...missing].filter(name => name.length <= 40).slice(0, 3)
  if (names.length === 0 || !refusal.rule.startsWith('destroy-')) return refusal
  return {
    ...refusal,
    reason: `${refusal.reason}; not set here: ${names.map(name => `$${name}`).join(', ')}`,
  }
}
