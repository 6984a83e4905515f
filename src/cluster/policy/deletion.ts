import { type Call, type Check, first, hasOption, operands, transfer } from './call.ts'
import type { Refusal } from './rules.ts'
import { dangerOf, isVitalFile, losesFiles, resolvePath } from './targets.ts'

const WHAT = {
  root: 'the root of the file system',
  system: 'a directory the system needs',
  home: 'the home of a user',
}
const RULE = { root: 'destroy-root', system: 'destroy-system-directory', home: 'destroy-home' }

const destroys = (target: string, call: Call, verb: string): Refusal | undefined => {
  const danger = dangerOf(target, call.cwds)
  return danger && { rule: RULE[danger], reason: `${call.name} would ${verb} ${WHAT[danger]} (${target})` }
}

/** A plain `rm` takes no directories; yet some files, and all the files of some directories, are as needed. */
const destroysFiles = (target: string, call: Call): Refusal | undefined => {
  if (isVitalFile(target, call.cwds))
    return {
      rule: 'destroy-system-file',
      reason: `${call.name} would delete ${target}, which the system needs`,
    }
  const danger = losesFiles(target, call.cwds)
  return (
    danger && {
      rule: RULE[danger],
      reason: `${call.name} would delete the files of ${WHAT[danger]} (${target})`,
    }
  )
}

const deletes = (target: string, call: Call): Refusal | undefined =>
  destroys(target, call, 'delete') ?? destroysFiles(target, call)

export const removes: Check = call =>
  hasOption(call.args, 'rR', '--recursive')
    ? first(operands(call.args), target => deletes(target, call))
    : unlinks(call)

export const unlinks: Check = call => first(operands(call.args), target => destroysFiles(target, call))

/** Tools that need no option to delete a directory. */
export const removesAll: Check = call => first(operands(call.args), target => deletes(target, call))

/** tar --remove-files deletes what it has packed. */
export const packs: Check = call =>
  call.args.some(arg => /^--remove-f/.test(arg))
    ? first(operands(call.args), target => destroys(target, call, 'delete'))
    : undefined

export const moves: Check = call =>
  first(transfer(call.args).sources, target => destroys(target, call, 'move away'))

export const mirrors: Check = call =>
  call.args.some(arg => arg.startsWith('--del'))
    ? first(operands(call.args).slice(-1), target => destroys(target, call, 'empty'))
    : undefined

/** `git clean` deletes what is not committed: in a home or the root, nearly everything. */
export const cleans: Check = call => {
  const verb = call.args.indexOf('clean')
  if (verb < 0 || !hasOption(call.args.slice(verb), 'f', '--force')) return undefined
  if (hasOption(call.args.slice(verb), 'n', '--dry-run')) return undefined
  const at = call.args.indexOf('-C')
  const cwds =
    at >= 0 && at < verb ? call.cwds.map(cwd => resolvePath(call.args[at + 1] ?? '', cwd)) : call.cwds
  const targets = operands(call.args.slice(verb + 1))
  return first(targets.length > 0 ? targets : ['.'], target => destroys(target, { ...call, cwds }, 'empty'))
}
