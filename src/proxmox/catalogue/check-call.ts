import { didYouMean } from '../../jobs/nearest.ts'
import { encodeScalar, type Scalar } from '../encode.ts'
import type { Operation, Parameter } from './catalogue-operation.ts'
import type { FindOperation } from './operation-matcher.ts'
import { compilePattern } from './perl-pattern.ts'

export interface Problem {
  readonly param?: string
  readonly problem: string
  /** `unsure`: the documentation of the host may be older than its daemons, so the host must decide. */
  readonly severity: 'error' | 'unsure'
}

/** Checks a call against the catalogue before it is sent. Returns an empty list if no problem is known. */
export const checkCall = (
  find: FindOperation,
  call: { verb: string; path: string; params: Readonly<Record<string, unknown>> },
): Problem[] => {
  const operation = find(call.verb, call.path)
  if (!operation) return [unknownOperation(find, call)]
  const inPath = new Set([...operation.path.matchAll(/\{([^}]+)\}/g)].map(match => match[1]!))
  const template = call.path.includes('{')
  const given = new Map(Object.entries(call.params).filter(([, value]) => isSent(value)))
  const problems: Problem[] = []
  for (const [name, value] of given) {
    const param = findParameter(operation, name)
    if (param) problems.push(...checkValue(param, name, value))
    else if (!operation.open) problems.push(unknownParameter(operation, name))
  }
  for (const param of operation.params) {
    if (!param.required || param.indexed || given.has(param.name)) continue
    if (inPath.has(param.name) && !template) continue
    problems.push({ param: param.name, problem: 'is required', severity: 'error' })
  }
  return problems
}

/** An encoded form cannot contain null or an empty list. */
const isSent = (value: unknown): boolean =>
  value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)

const findParameter = (operation: Operation, name: string): Parameter | undefined => {
  const family = /^(.*\D)\d+$/.exec(name)?.[1]
  return operation.params.find(param => param.name === (param.indexed ? family : name))
}

const checkValue = (param: Parameter, name: string, value: unknown): Problem[] => {
  if (Array.isArray(value)) {
    const lists = param.type === 'array' || (param.format ?? '').endsWith('-list')
    if (lists) return []
    // A list of one value is sent like the value.
    if (value.length === 1) return checkValue(param, name, value[0])
    return [{ param: name, problem: 'takes one value, not a list', severity: 'error' }]
  }
  if (typeof value === 'object') return [{ param: name, problem: 'cannot be an object', severity: 'error' }]
  const problem = scalarProblem(param, encodeScalar(value as Scalar))
  return problem === undefined ? [] : [{ param: name, ...problem }]
}

/** Follows the checks of Proxmox VE on the encoded text. In doubt, reports no problem. */
const scalarProblem = (param: Parameter, text: string): Omit<Problem, 'param'> | undefined => {
  const error = (problem: string) => ({ problem, severity: 'error' as const })
  if (param.type === 'boolean')
    return /^[01]\n?$/.test(text) ? undefined : error(`must be 1 or 0, not "${text}"`)
  if (param.type === 'integer' && !/^[+-]?\d+\n?$/.test(text))
    return error(`must be a whole number, not "${text}"`)
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
  // Perl counts code points, not UTF-16 units.
  if (param.maxLength !== undefined && text.length > param.maxLength && [...text].length > param.maxLength)
    return error(`has more than ${param.maxLength} characters`)
  const pattern = param.pattern === undefined ? undefined : compilePattern(param.pattern)
  if (pattern && !pattern.test(text))
    return { problem: `does not match ${param.pattern}`, severity: 'unsure' }
  return undefined
}

const unknownParameter = (operation: Operation, name: string): Problem => {
  const guess = didYouMean(
    name,
    operation.params.map(param => param.name),
  )
  return { param: name, problem: `is not a known parameter${guess}`, severity: 'unsure' }
}

const unknownOperation = (find: FindOperation, { verb, path }: { verb: string; path: string }): Problem => {
  const others = ['GET', 'POST', 'PUT', 'DELETE'].filter(other => find(other, path))
  const also = others.length > 0 ? `; this path supports ${others.join(', ')}` : ''
  return {
    problem: `${verb.toUpperCase()} ${path} is not in the catalogue of this host${also}`,
    severity: 'unsure',
  }
}
