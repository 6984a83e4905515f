import { AppError } from '../../jobs/errors.ts'
import { matchesPattern } from '../command-pattern.ts'
import { interpretScript, TooComplex } from './interpret.ts'
import { type Refusal, readable, refuseAction } from './policy-rules.ts'
import type { Action } from './script-actions.ts'
import { createScope, type Scope, setVariable } from './shell-scope.ts'

/** A rule from the configuration. It refuses a program whose arguments contain these words in this order. */
interface DenyRule {
  name: string
  /** `terraform destroy`, `git push --force`; `*` stands for any one word. */
  command: string
  reason?: string | undefined
}

export interface PolicyOptions {
  /** The login user of the node is root. */
  root?: boolean
  env?: Readonly<Record<string, string>>
  cwd?: string
  deny?: readonly DenyRule[]
  /** Names of built-in rules to skip. */
  disable?: readonly string[]
}

export type Verdict = { allowed: true } | ({ allowed: false } & Refusal)

const MAX_LENGTH = 128 * 1024

/**
 * Reads a command as a shell does and decides whether it may run. The policy prevents accidents, not attacks: run
 * untrusted commands in an isolated machine.
 */
export const checkCommand = (source: string, options: PolicyOptions = {}): Verdict => {
  const { found, missing } = firstRefusal(source, options)
  if (!found) return { allowed: true }
  // An unset variable is the usual cause: `rm -rf "$DIR"/*`.
  const names = [...missing].filter(name => name.length <= 40).slice(0, 3)
  const cause =
    names.length > 0 && found.rule.startsWith('destroy-')
      ? `; not set here: ${names.map(name => `$${name}`).join(', ')}`
      : ''
  return { allowed: false, rule: found.rule, reason: readable(found.reason) + cause }
}

export const assertAllowed = (source: string, options: PolicyOptions = {}): void => {
  if (source.trim() === '')
    throw new AppError('invalid', 'The command is empty.', { hint: 'Pass a command to run.' })
  const verdict = checkCommand(source, options)
  if (verdict.allowed) return
  throw new AppError(
    'denied',
    `The command policy refuses this command by the rule '${verdict.rule}': ${verdict.reason}.`,
    {
      hint: 'Run it in an isolated machine instead (submit_job), or change cluster.policy in the configuration.',
      details: { rule: verdict.rule },
    },
  )
}

/**
 * Lists the simple commands of a script for routing, each with and without its wrappers. The list stops where the
 * script becomes too complex.
 */
export const commandsOf = (source: string): readonly (readonly string[])[] => {
  const commands: (readonly string[])[] = []
  read(source, createScope(), action => {
    if (action.kind === 'run') commands.push(action.argv)
  })
  return commands
}

const firstRefusal = (source: string, { env = {}, deny = [], disable = [], ...options }: PolicyOptions) => {
  let found: Refusal | undefined
  const refuse = (refusal: Refusal | undefined): void => {
    if (refusal && !disable.includes(refusal.rule)) found ??= refusal
  }
  if (source.includes('\0')) refuse({ rule: 'nul-byte', reason: 'a command cannot contain a NUL byte' })
  if (source.length > MAX_LENGTH)
    refuse({ rule: 'too-complex', reason: `it is longer than ${MAX_LENGTH / 1024} KiB` })
  const scope = createScope(options)
  for (const [name, value] of Object.entries(env)) setVariable(scope, name, value)
  if (!found)
    refuse(
      read(source, scope, action => {
        if (action.kind === 'run') refuse(deniedByUser(action.argv, deny))
        refuse(refuseAction(action))
      }),
    )
  return { found, missing: scope.missing }
}

const read = (source: string, scope: Scope, report: (action: Action) => void): Refusal | undefined => {
  try {
    interpretScript(source.replace(/[\uE000-\uE001]/g, '_'), scope, report)
    return undefined
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error
    return { rule: 'too-complex', reason: error.message }
  }
}

const deniedByUser = (argv: readonly string[], rules: readonly DenyRule[]): Refusal | undefined => {
  const rule = rules.find(candidate => matchesPattern(argv, candidate.command))
  return rule && { rule: rule.name, reason: rule.reason ?? `"${rule.command}" is not allowed here` }
}
