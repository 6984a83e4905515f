import type { Builtin } from './commands.ts'
import { guessScript } from './guess.ts'
import { memo } from './memo.ts'
import { scriptsOf } from './shells.ts'
import { UNKNOWN } from './text.ts'

const NAMES = ['GNUmakefile', 'makefile', 'Makefile']
const MAX_RECIPES = 64
const MAX_TEXT = 16_384

/** make runs the recipes of a file; those that this script wrote itself are read. */
export const make: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex(arg => /^-\w*f$|^--(?:make)?file$/.test(arg))
  const given =
    at >= 0 ? args[at + 1] : args.find(arg => /^--(?:make)?file=/.test(arg))?.replace(/^[^=]*=/, '')
  const texts =
    given === '-' || given === '/dev/stdin'
      ? [stdin]
      : (given === undefined ? NAMES : [given]).flatMap(name => scriptsOf(interpreter, name, scope) ?? [])
  const inline = args.flatMap((arg, index) =>
    arg.startsWith('--eval=') ? [arg.slice(7)] : args[index - 1] === '--eval' ? [arg] : [],
  )
  const settings = args.filter(arg => /^[A-Za-z_.]\w*[:?+]?=/.test(arg)).join('\n')
  for (const text of [...texts, ...inline])
    for (const recipe of recipesOf(`${text.slice(0, MAX_TEXT)}\n${settings}`))
      guessScript(interpreter, recipe, scope)
  return UNKNOWN
}

/** What a makefile would give to a shell, with the variables that it sets itself. */
const recipesOf = memo((text: string): string[] => {
  const lines = text.replaceAll('\\\n', ' ').split('\n')
  const variables = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = /^\s*(?:export\s+)?([\w.]+)\s*(?:[:?+]{0,2}=)\s*(.*)$/.exec(line) ?? []
    if (name !== undefined) variables.set(name, value!)
  }
  const resolve = (recipe: string, depth = 0): string =>
    recipe.replace(/\$[({]([\w.]+)[)}]/g, (_, name: string) => {
      const value = variables.get(name)
      return value === undefined || depth > 4 ? UNKNOWN : resolve(value, depth + 1)
    })
  const recipes = lines.flatMap(line => {
    const shell = [...line.matchAll(/\$\(shell\s+([^()]*)\)/g)].map(match => match[1]!)
    const own = /^\t(.*)$/.exec(line)?.[1] ?? /^[\w.%/ -]+::?[^=;]*;(.*)$/.exec(line)?.[1]
    return own === undefined ? shell : [...shell, own.replace(/^[@+\s-]+/, '')]
  })
  return recipes.slice(0, MAX_RECIPES).map(recipe => resolve(recipe).replaceAll('$$', '$'))
})
