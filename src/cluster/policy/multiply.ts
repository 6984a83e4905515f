import { shellQuote } from '../remote/quote.ts'
import type { Builtin } from './commands.ts'
import type { Interpreter } from './interpreter.ts'
import type { Scope } from './scope.ts'
import { runScript, scriptsOf } from './shells.ts'
import { ENDLESS, UNKNOWN } from './text.ts'

const MAX_ITEMS = 64
const MAX_REPLACED = 16

/** xargs puts what it reads behind the words it has. */
export const xargs: Builtin = (interpreter, args, scope, input) => {
  let at = 0
  let token: string | undefined
  for (; at < args.length && args[at]!.startsWith('-'); at++) {
    const arg = args[at]!
    if (/^-[IiJ]/.test(arg)) token = arg.length > 2 ? arg.slice(2) : arg === '-i' ? '{}' : args[++at]
    else if (/^-[nPLsdaER]$/.test(arg) || VALUED.includes(arg)) at++
  }
  const command = args.slice(at)
  const options = args.slice(0, at)
  const from = options.find((_, index) => /^(?:-a|--arg-file)$/.test(options[index - 1] ?? ''))
  const stdin = from === undefined ? input : (scriptsOf(interpreter, from, scope)?.join('\n') ?? UNKNOWN)
  refuseEndless(interpreter, stdin, isUnbounded(options, /^(?:-P|--max-procs)$/))
  // Whole lines where a word is replaced, and up to a NUL where that is asked for.
  const whole = token !== undefined && token !== '' ? token : undefined
  const items = itemsOf(
    stdin,
    options.some(arg => /^-\w*0|^--null$/.test(arg)) ? /\0/ : whole ? /\n/ : /[\s\0]+/,
  )
  const argv = command.length > 0 ? command : ['echo']
  return whole
    ? each(interpreter, argv, items, { token: whole, scope })
    : interpreter.run([...argv, ...items], scope, '')
}

const VALUED = ['--max-args', '--max-procs', '--arg-file', '--delimiter']

/** GNU parallel: words after `:::`, or lines; without a command each line is one. The words go through a shell. */
export const parallel: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  let token = '{}'
  for (; at < args.length && /^-./.test(args[at]!); at++) {
    const arg = args[at]!
    if (arg === '-I') token = args[++at] ?? token
    else if (/^-[jSanNdCP]$|^--(?:jobs|arg-file|sshlogin|max-args|delimiter|colsep)$/.test(arg)) at++
  }
  refuseEndless(interpreter, stdin, isUnbounded(args.slice(0, at), /^(?:-[jP]|--jobs)$/))
  const rest = args.slice(at)
  const marker = rest.findIndex(arg => /^:::+\+?$/.test(arg))
  const command = marker < 0 ? rest : rest.slice(0, marker)
  const items = marker < 0 ? itemsOf(stdin, /\n/) : rest.slice(marker + 1).filter(arg => !/^:::/.test(arg))
  const joined = command.join(' ')
  return items
    .slice(0, MAX_REPLACED)
    .map(item => {
      const word = shellQuote(item)
      const script =
        joined === '' ? item : joined.includes(token) ? joined.replaceAll(token, word) : `${joined} ${word}`
      return runScript(interpreter, script, scope.fork({ stdin: '' }))
    })
    .join('')
}

/** `-P0`, `-P 0`, `--max-procs=0`, `--jobs 0`: as many at once as there is input. */
const isUnbounded = (options: readonly string[], names: RegExp): boolean =>
  options.some((arg, index) => {
    const [, name, value] = /^(-[A-Za-z]|--[\w-]+?)=?(\d*)$/.exec(arg) ?? []
    return name !== undefined && names.test(name) && Number(value || options[index + 1]) === 0
  })

const refuseEndless = (interpreter: Interpreter, stdin: string, unbounded: boolean): void => {
  if (unbounded && stdin.includes(ENDLESS))
    interpreter.refuse({ rule: 'fork-bomb', reason: 'it starts processes without end' })
}

const itemsOf = (stdin: string, separator: RegExp): string[] => {
  const items = stdin
    .replaceAll(ENDLESS, '')
    .split(separator)
    .filter(field => field !== '')
    .slice(0, MAX_ITEMS)
  return items.length > 0 ? items : [UNKNOWN]
}

const each = (
  interpreter: Interpreter,
  argv: readonly string[],
  items: readonly string[],
  { token, scope }: { token: string; scope: Scope },
): string =>
  items
    .slice(0, MAX_REPLACED)
    .map(item =>
      interpreter.run(
        argv.map(word => word.replaceAll(token, item)),
        scope,
        '',
      ),
    )
    .join('')
