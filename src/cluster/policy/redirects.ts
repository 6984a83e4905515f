import type { Redirect, Redirection } from 'unbash'
import type { Interpreter } from './interpreter.ts'
import { judgeWrite } from './rules.ts'
import type { Scope } from './scope.ts'
import { DOWNLOAD, processOutput, UNKNOWN } from './text.ts'

export interface Redirects {
  /** What the command reads, when a redirection says so. */
  input: string | undefined
  /** Takes what the command prints; returns what is left for the pipe. */
  pass(output: string): string
}

export const readRedirects = (
  interpreter: Interpreter,
  redirects: readonly Redirection[],
  scope: Scope,
): Redirects => {
  const { expander } = interpreter
  let input: string | undefined
  const targets: { path: string; append: boolean }[] = []
  for (const redirect of redirects) {
    const take = (text: string): void => {
      const number = descriptorOf(redirect)
      if (number > 0) interpreter.files.write(`/dev/fd/${number}`, text, scope)
      else input = text
    }
    if (redirect.type === 'HereDoc') {
      const { body } = redirect
      take((body.parts ? expander.partTexts(body.parts, scope)[0] : body.text) ?? '')
      continue
    }
    if (!redirect.target) continue
    const texts = expander.texts(redirect.target, scope)
    const first = texts[0] ?? ''
    if (redirect.type === 'HereString') take(`${first}\n`)
    else if (redirect.operator === '<') take(contentOf(interpreter, first, scope))
    else if (redirect.operator === '<&')
      take(contentOf(interpreter, `/dev/fd/${first.replace(/-$/, '')}`, scope))
    else {
      if (NETWORK.test(first)) take(DOWNLOAD)
      const append = redirect.operator.endsWith('>>')
      for (const path of texts) interpreter.refuse(judgeWrite(path, scope.cwds, append))
      if (takesOutput(redirect, first)) for (const path of texts) targets.push({ path, append })
    }
  }
  return {
    input,
    pass: output => {
      for (const { path, append } of targets) interpreter.deliver(path, output, scope, append)
      return targets.length > 0 ? '' : output
    },
  }
}

const NETWORK = /^\/dev\/(?:tcp|udp)\//

const descriptorOf = ({ descriptor }: Redirection): number =>
  descriptor?.type === 'FileDescriptor' ? descriptor.value : 0

const contentOf = (interpreter: Interpreter, path: string, scope: Scope): string =>
  (NETWORK.test(path) ? DOWNLOAD : undefined) ??
  processOutput(path, interpreter.processes) ??
  interpreter.files.read(path, scope.cwds)?.join('\n') ??
  UNKNOWN

/** Standard output to a name: neither `2>file` nor `>&2`. */
const takesOutput = ({ descriptor, operator }: Redirect, target: string): boolean => {
  if (descriptor && !(descriptor.type === 'FileDescriptor' && descriptor.value === 1)) return false
  return !(operator === '>&' && /^(?:\d+-?|-)$/.test(target)) && !/^\/dev\/(?:stdout|fd\/1)$/.test(target)
}
