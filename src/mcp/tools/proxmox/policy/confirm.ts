import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../../../jobs/errors.ts'
import type { Guest } from '../context.ts'
import { auditLine } from './audit.ts'
import type { Caller, GateOptions } from './gate.ts'
import { type Operation, showPath } from './operation.ts'
import { digestOf } from './plan.ts'
import { nameOf } from './protect.ts'
import { tierOf } from './tier.ts'

/** How this client can confirm, and what it has brought. */
export type Confirmation =
  /** It cannot ask the user: only a plan token helps. */
  | { readonly kind: 'token'; readonly token?: string | undefined }
  /** It can ask, and has the answer of the user to the question that `state` belongs to. */
  | {
      readonly kind: 'ask'
      readonly answer?: { readonly accepted: boolean; readonly state: string } | undefined
    }

/** What the user must decide. Not a failure: the call was understood and not sent. */
export class ConfirmationNeeded extends AppError {
  readonly question: Question
  constructor(question: Question) {
    super('denied', `${question.summary} needs the confirmation of the user.`)
    this.name = 'ConfirmationNeeded'
    this.question = question
  }
}

export interface Question {
  readonly summary: string
  readonly operation: {
    readonly method: string
    readonly path: string
    readonly params: Record<string, unknown>
  }
  readonly guests: readonly string[]
  readonly expiresAt: number
  /** Only for a client that asks: comes back with the answer and proves what was asked. */
  readonly state?: string
  /** Only where the model may see it. */
  readonly token?: string
  /** Where the user finds the token. */
  readonly file?: string
}

export type PlanFiles = (id: string, text: string) => Promise<string>

export const createPlanFiles =
  (directory: string): PlanFiles =>
  async (id, text) => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await removeOld(directory)
    const file = join(directory, `${id}.txt`)
    await writeFile(file, text, { mode: 0o600, flag: 'wx' })
    return file
  }

const KEPT_MS = 60 * 60_000

/** Plans are void after minutes; their files need not stay for years. */
const removeOld = async (directory: string): Promise<void> => {
  for (const name of await readdir(directory)) {
    const file = join(directory, name)
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > KEPT_MS) await rm(file, { force: true })
  }
}

/** Returns only when the user has agreed to this very call. */
export const confirmOrAsk = async (
  { plans, planFiles, settings }: GateOptions,
  operation: Operation,
  caller: Caller,
  guests: readonly (Guest | { readonly vmid: number })[],
): Promise<void> => {
  const call = digestOf(caller.who, operation)
  const { confirmation } = caller
  if (confirmation.kind === 'ask' && confirmation.answer) {
    if (!confirmation.answer.accepted) throw declined(operation)
    return plans.redeem(confirmation.answer.state, call)
  }
  if (confirmation.kind === 'token' && confirmation.token !== undefined)
    return plans.redeem(confirmation.token, call)

  const plan = plans.issue(call)
  const { params } = auditLine({
    ...caller,
    operation,
    tier: tierOf(operation),
    event: 'unconfirmed',
    id: plan.id,
  })
  const question: Question = {
    summary: `${operation.method} ${showPath(operation)}`,
    operation: { method: operation.method, path: showPath(operation), params },
    guests: guests.slice(0, 20).map(describe),
    expiresAt: plan.expiresAt,
  }
  if (confirmation.kind === 'ask') throw new ConfirmationNeeded({ ...question, state: plan.token })
  if (settings.confirm === 'token') throw new ConfirmationNeeded({ ...question, token: plan.token })
  throw new ConfirmationNeeded({
    ...question,
    file: await planFiles(plan.id, planText(question, plan.token, caller)),
  })
}

const describe = (guest: Guest | { readonly vmid: number }): string =>
  'node' in guest ? `${nameOf(guest)}, ${guest.status ?? 'unknown'}, on ${guest.node}` : nameOf(guest)

const planText = (question: Question, token: string, caller: Caller): string =>
  [
    `${caller.who} wants to: ${question.summary}`,
    ...Object.entries(question.operation.params).map(([key, value]) => `  ${key} = ${String(value)}`),
    ...question.guests.map(guest => `  reaches ${guest}`),
    '',
    `To agree before ${new Date(question.expiresAt).toISOString()}, give the agent this plan token:`,
    token,
    '',
  ].join('\n')

const declined = (operation: Operation) =>
  new AppError('denied', `The user declined ${operation.method} ${showPath(operation)}.`, {
    hint: 'Do not try again unless the user asks for it.',
  })
