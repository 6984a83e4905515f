import { matchPath } from './match.ts'
import type { Operation, Parameter } from './operation.ts'
import { compilePattern } from './pattern.ts'

export interface Problem {
  readonly param?: string
  readonly problem: string
  /** `unsure`: the host's documentation may lag behind its daemons, so let the host judge. */
  readonly severity: 'error' | 'unsure'
}

/** What is wrong with a call before it is sent; empty when nothing is known against it. */
export const checkCall = (
  operations: readonly Operation[],
  call: { verb: string; path: string; params: Readonly<Record<string, unknown>> },
): Problem[] => {
  if (operations.length === 0) return []
  const operation = matchPath(operations, call.verb, call.path)
  if (!operation) return [unknownOperation(operations, call)]
  const inPath = new Set([...operation.path.matchAll(/\{([^}]+)\}/g)].map(match => match[1]!))
  const template = call.path.includes('{')
  const problems: Problem[] = []
  for (const [name, value] of Object.entries(call.params)) {
    if (value === undefined || value === null) continue
    const param = findParameter(operation, name)
    if (param) problems.push(...checkValue(param, name, value))
    else if (!operation.open) problems.push(unknownParameter(operation, name))
  }
  for (const param of operation.params) {
    if (!param.required || param.indexed || call.params[param.name] !== undefined) continue
    if (inPath.has(param.name) && !template) continue
    problems.push({ param: param.name, problem: 'is required', severity: 'error' })
  }
  return problems
}

const findParameter = (operation: Operation, name: string): Parameter | undefined =>
  operation.params.find(param =>
    param.indexed ? name.replace(/\d+$/, '') === param.name && /\d$/.test(name) : param.name === name,
  )

const checkValue = (param: Parameter, name: string, value: unknown): Problem[] => {
  if (Array.isArray(value)) {
    const lists = param.type === 'array' || (param.format ?? '').endsWith('-list')
    return lists ? [] : [{ param: name, problem: 'takes one value, not a list', severity: 'error' }]
  }
  if (typeof value === 'object') return [{ param: name, problem: 'cannot be an object', severity: 'error' }]
  const problem = scalarProblem(param, String(value), typeof value === 'boolean')
  return problem === undefined ? [] : [{ param: name, ...problem }]
}

const scalarProblem = (
  param: Parameter,
  text: string,
  isBoolean: boolean,
): Omit<Problem, 'param'> | undefined => {
  const error = (problem: string) => ({ problem, severity: 'error' as const })
  if (param.type === 'boolean') {
    return isBoolean || /^[01]$/.test(text) ? undefined : error(`must be 1 or 0, not "${text}"`)
  }
  if (param.type === 'integer' && !/^-?\d+$/.test(text)) return error(`must be a whole number, not "${text}"`)
  if (param.type === 'number' && !Number.isFinite(Number(text)))
    return error(`must be a number, not "${text}"`)
  if (param.type === 'integer' || param.type === 'number') {
    if (param.minimum !== undefined && Number(text) < param.minimum)
      return error(`must be at least ${param.minimum}`)
    if (param.maximum !== undefined && Number(text) > param.maximum)
      return error(`must be at most ${param.maximum}`)
  }
  if (param.enum && !param.enum.includes(text))
    return error(`must be one of ${param.enum.join(', ')}, not "${text}"`)
  if (param.minLength !== undefined && text.length < param.minLength)
    return error(`has fewer than ${param.minLength} characters`)
  if (param.maxLength !== undefined && text.length > param.maxLength)
    return error(`has more than ${param.maxLength} characters`)
  const pattern = param.pattern === undefined ? undefined : compilePattern(param.pattern)
  if (pattern && !pattern.test(text))
    return { problem: `does not look like ${param.pattern}`, severity: 'unsure' }
  return undefined
}

const unknownParameter = (operation: Operation, name: string): Problem => {
  const near = nearest(
    name,
    operation.params.map(param => param.name),
  )
  return {
    param: name,
    problem: `is not a known parameter${near ? `; did you mean "${near}"?` : ''}`,
    severity: 'unsure',
  }
}

const unknownOperation = (
  operations: readonly Operation[],
  { verb, path }: { verb: string; path: string },
): Problem => {
  const others = ['GET', 'POST', 'PUT', 'DELETE'].filter(other => matchPath(operations, other, path))
  const also = others.length > 0 ? `; this path knows ${others.join(', ')}` : ''
  return {
    problem: `${verb.toUpperCase()} ${path} is not in the catalogue of this host${also}`,
    severity: 'unsure',
  }
}

const nearest = (name: string, known: readonly string[]): string | undefined => {
  const plain = (text: string) => text.toLowerCase().replace(/[-_]/g, '')
  return (
    known.find(one => plain(one) === plain(name)) ??
    known.find(one => plain(one).startsWith(plain(name)) || plain(name).startsWith(plain(one))) ??
    known.find(one => sharesAllButOne(plain(one), plain(name)))
  )
}

const sharesAllButOne = (a: string, b: string): boolean => {
  if (Math.abs(a.length - b.length) > 1 || a.length < 4) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++
  return Math.max(a.length, b.length) - start - end <= 1
}
