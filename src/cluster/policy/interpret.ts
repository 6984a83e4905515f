import type { ParsedScript } from 'unbash'
import { dispatch } from './commands.ts'
import { createExpander } from './expand.ts'
import { createFiles } from './files.ts'
import { type Interpreter, Refused, tooComplex, type Visitor } from './interpreter.ts'
import type { Scope } from './scope.ts'
import { readCommand, readScript } from './script.ts'
import { runsLater } from './shells.ts'
import { processNumber, readable, UNKNOWN, withoutMarks } from './text.ts'
import { createWalker } from './walk.ts'

/** Nothing is known of them together that is not known of one. */
const UNKNOWNS = /\uE000(?:\s*\uE000)+/g
/** The longest command the kernel takes. */
const MAX_SOURCE = 131_072
/** On top of one for every second character of the script. Together some fifty milliseconds. */
const MAX_STEPS = 16_000
const MAX_TEXT = 6_000_000
/** The part after which the reader hurries. */
const UNHURRIED = 0.25

/**
 * Reads a script as the shell would, without running anything: what words become, what pipes carry as far as it
 * can be told, what inner shells get. Every simple command is shown to the visitor; a refusal ends the reading.
 */
export const interpret = (source: string, scope: Scope, visitor: Visitor): void => {
  if (source.length > MAX_SOURCE) throw tooComplex(`is ${Math.ceil(source.length / 1024)} KiB long, too long`)
  const steps = budget(MAX_STEPS + source.length / 2, 'takes too many steps')
  const texts = budget(MAX_TEXT + 20 * source.length, 'makes too much text')
  const consumers = new Map<number, ParsedScript>()
  const hurry = (): void => {
    interpreter.hurried = true
  }
  const spend = (length: number): void => texts(length, hurry)
  const files = createFiles(spend)
  const interpreter: Interpreter = {
    expander: createExpander({
      substitute: (script, inner, kind) => {
        const output = script ? walker.script(script, inner.fork({ depth: inner.depth + 1 })) : UNKNOWN
        if (kind === 'command') return output.replace(UNKNOWNS, UNKNOWN)
        const number = interpreter.processes.push(output) - 1
        if (kind === 'consumer' && script) consumers.set(number, script)
        return String(number)
      },
      enter: (expression, inner) => walker.nested(expression, inner),
      spend,
    }),
    visitor,
    processes: [],
    files,
    temporaries: 0,
    guessing: false,
    hurried: false,
    passed: new Set(),
    traps: [],
    active: new Map(),
    run: (argv, inner, stdin) => dispatch(interpreter, argv, inner, stdin),
    runText: (text, inner) => {
      spend(text.length)
      return walker.read(readScript(text), inner)
    },
    runBody: (body, inner) => walker.node(body, inner),
    refuse: refusal => {
      if (!refusal || visitor.enabled?.(refusal.rule) === false) return
      throw new Refused({ ...refusal, reason: readable(refusal.reason) })
    },
    deliver: (path, output, inner, append) => {
      spend(output.length)
      const consumer = consumers.get(processNumber(path) ?? -1)
      if (consumer) walker.script(consumer, inner.fork({ depth: inner.depth + 1, stdin: output }))
      else if (!path.startsWith('/dev/')) {
        interpreter.files.write(path, output, inner, append)
        runsLater(interpreter, path, output, inner)
      }
    },
    tick: () => steps(1, hurry),
    spend,
  }
  const walker = createWalker(interpreter)

  try {
    walker.read(readCommand(withoutMarks(source)), scope)
    for (const trap of interpreter.traps.splice(0)) interpreter.runText(trap, scope)
  } catch (error) {
    if (error instanceof RangeError) throw tooComplex('is nested too deeply')
    throw error
  }
}

const budget = (total: number, excess: string): ((amount: number, onHurry: () => void) => void) => {
  let left = total
  return (amount, onHurry) => {
    left -= amount
    if (left < 0) throw tooComplex(excess)
    if (left < total * (1 - UNHURRIED)) onHurry()
  }
}
