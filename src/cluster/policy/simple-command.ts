import type { Assignment, Command } from 'unbash'
import { joined } from './branches.ts'
import { isPlain } from './commands.ts'
import { guessScript, isRunning } from './guess.ts'
import type { Interpreter } from './interpreter.ts'
import { product } from './product.ts'
import { readRedirects } from './redirects.ts'
import type { Scope } from './scope.ts'
import { UNKNOWN } from './text.ts'

const MAX_ARGVS = 16
const READERS = new Set(['read', 'mapfile', 'readarray'])

/** Assignments, redirections, and every command line that the words of a simple command may become. */
export const runCommand = (interpreter: Interpreter, node: Command, scope: Scope): string => {
  const { expander } = interpreter
  const redirects = readRedirects(interpreter, node.redirects, scope)
  const assignments = node.prefix.filter(item => item.type === 'Assignment')
  if (!node.name) {
    for (const assignment of assignments) assign(interpreter, assignment, scope)
    // `$(<file)` is what the file holds.
    return redirects.pass(assignments.length === 0 ? (redirects.input ?? '') : '')
  }
  const choices = [node.name, ...node.args].map(word => {
    if (word.type === 'Word') return expander.fields(word, scope)
    assign(interpreter, word, scope)
    const value = word.value.type === 'Word' ? expander.texts(word.value, scope)[0] : undefined
    return [[`${word.name}=${value ?? UNKNOWN}`]]
  })
  const [names] = choices
  const only = names?.length === 1 ? names[0]![0] : undefined
  const argvs = product(choices, only !== undefined && isPlain(only, scope) ? 1 : MAX_ARGVS)
  // `IFS= read x` sets x here, whatever it borrows.
  const stays = assignments.length === 0 || READERS.has(node.name.value)
  const own = stays ? scope : scope.fork()
  const separators = stays ? assignments.find(({ name }) => name === 'IFS')?.value : undefined
  if (separators?.type === 'Word') scope.borrowed = expander.texts(separators, scope)
  if (!stays)
    for (const assignment of assignments) {
      assign(interpreter, assignment, own)
      if (isRunning(assignment.name))
        for (const value of own.lookup(assignment.name)) guessScript(interpreter, value, own)
    }
  const stdin = redirects.input ?? scope.stdin
  const before = own.stdin
  own.stdin = stdin
  const output = joined(argvs.map(argv => interpreter.run(argv, own, stdin)))
  own.stdin = before
  own.borrowed = undefined
  return redirects.pass(output)
}

const assign = ({ expander }: Interpreter, assignment: Assignment, scope: Scope): void => {
  if (assignment.index) expander.texts(assignment.index, scope)
  if (assignment.value.type === 'ArrayValue') {
    const elements = assignment.value.elements.flatMap(element => expander.fields(element, scope)[0] ?? [])
    if (assignment.append) scope.append(assignment.name, elements)
    else scope.assignArray(assignment.name, elements)
    return
  }
  const values = expander.texts(assignment.value, scope)
  if (assignment.append) scope.append(assignment.name, values)
  else scope.assign(assignment.name, values)
}
