import { AppError } from '../../../../jobs/errors.ts'
import type { Guest } from '../row-context.ts'
import { type Operation, showPath } from './api-operation.ts'
import { auditLine } from './audit.ts'
import type { Caller, GateOptions } from './gate.ts'
import { digestOf } from './plan-tokens.ts'
import { nameOf } from './protected-guests.ts'
import { tierOf } from './tier.ts'

/** How this client can confirm a call, and the confirmation it sent. */
export type Confirmation =
  /** The client cannot ask the user and needs a plan token. */
  | { readonly kind: 'token'; readonly token?: string | undefined }
  /** The client can ask the user. `state` identifies the question that was answered. */
  | {
      readonly kind: 'ask'
      readonly answer?: { readonly accepted: boolean; readonly state: string } | undefined
    }

/** The user must confirm the call. Nothing was sent. */
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
  /** Only for a client that asks: it returns this with the answer, which proves what was asked. */
  readonly state?: string
  /** Only if the configuration lets the model confirm with a token. */
  readonly token?: string
  /** Id that the user approves on the command line. */
  readonly planId?: string
}

/** Returns only if the user has confirmed exactly this call; otherwise throws. */
export const requireConfirmation = async (
  { plans, approvals, settings }: GateOptions,
  operation: Operation,
  caller: Caller,
  guests: readonly (Guest | { readonly vmid: number })[],
): Promise<void> => {
  const call = digestOf(caller.who, operation)
  const { confirmation } = caller
  if (confirmation.kind === 'ask' && confirmation.answer?.accepted === false) throw declined(operation)
  if (approvals.take(call)) return
  if (confirmation.kind === 'ask' && confirmation.answer) return plans.redeem(confirmation.answer.state, call)
  if (confirmation.kind === 'token' && confirmation.token !== undefined) {
    if (settings.confirm === 'token') return plans.redeem(confirmation.token, call)
    throw noTokens()
  }

  const { params } = auditLine({
    ...caller,
    operation,
    tier: tierOf(operation),
    event: 'unconfirmed',
    id: '',
  })
  const asked = {
    summary: `${operation.method} ${showPath(operation)}`,
    operation: { method: operation.method, path: showPath(operation), params },
    guests: guests.slice(0, 20).map(describe),
  }
  if (confirmation.kind === 'token' && settings.confirm === 'user') {
    const { summary, guests: reached } = asked
    const { id, expiresAt, refused } = approvals.propose(call, {
      who: caller.who,
      summary,
      params,
      guests: reached,
    })
    if (refused) throw declined(operation)
    throw new ConfirmationNeeded({ ...asked, expiresAt, planId: id })
  }
  const { token, expiresAt } = plans.issue(call)
  throw new ConfirmationNeeded({
    ...asked,
    expiresAt,
    ...(confirmation.kind === 'ask' ? { state: token } : { token }),
  })
}

const describe = (guest: Guest | { readonly vmid: number }): string =>
  'node' in guest ? `${nameOf(guest)}, ${guest.status ?? 'unknown'}, on ${guest.node}` : nameOf(guest)

const declined = (operation: Operation) =>
  new AppError('denied', `The user declined ${operation.method} ${showPath(operation)}.`, {
    hint: 'Do not try again unless the user asks for it.',
  })

const noTokens = () =>
  new AppError('denied', 'Plan tokens are not used here: the user approves a call on the command line.', {
    hint: 'Make the call without plan_token and show its plan to the user.',
  })
