import { randomBytes } from 'node:crypto'
import type { ProxmoxToolsConfig, ProxmoxRule as Rule } from '../../../../config/proxmox-tools.ts'
import { AppError, toAppError } from '../../../../jobs/errors.ts'
import { isUpid } from '../../../../proxmox/upid.ts'
import type { GuestIndex } from '../guest-index.ts'
import type { Guest } from '../row-context.ts'
import type { Tier } from '../table/define-row.ts'
import { type AffectedGuests, affectedGuests } from './affected-guests.ts'
import { type Operation, showPath } from './api-operation.ts'
import type { Audit, AuditEntry } from './audit.ts'
import { firstRule, needsGuests, type RuleInput } from './call-rules.ts'
import { type Confirmation, requireConfirmation } from './confirm-call.ts'
import { equivalentNames } from './equivalent-tools.ts'
import type { Approvals } from './pending-approvals.ts'
import type { PlanTokens } from './plan-tokens.ts'
import { type Protection, refuseProtected } from './protected-guests.ts'
import { tierOf } from './tier.ts'

export interface Caller {
  /** Name of the caller in the audit log. */
  readonly who: string
  readonly tool: string
  readonly action: string
  readonly confirmation: Confirmation
  readonly signal: AbortSignal
  /** Reports the progress of a long call. */
  readonly progress?: (message: string) => void
}

export interface GateOptions {
  readonly settings: ProxmoxToolsConfig
  readonly own: Protection['own']
  readonly guests: GuestIndex
  readonly plans: PlanTokens
  readonly approvals: Approvals
  readonly audit: Audit
  readonly rate: { take(who: string): void }
  readonly now?: () => number
  /** Called when the audit line of a read cannot be written. */
  readonly onerror?: (error: unknown) => void
}

/** Authorizes and logs every request to Proxmox, whichever tool makes it. */
export interface Gate {
  pass<T>(operation: Operation, caller: Caller, send: () => Promise<T>): Promise<T>
}

export const createGate = (options: GateOptions): Gate => {
  const { audit, now = Date.now } = options

  return {
    async pass(operation, caller, send) {
      const tier = tierOf(operation)
      const id = randomBytes(6).toString('hex')
      const write = (event: AuditEntry['event'], more: { detail?: string; ms?: number } = {}) => {
        const { who, tool, action } = caller
        return audit.write({ id, who, tool, action, tier, operation, event, ...more })
      }
      try {
        await authorize(options, operation, caller, tier)
      } catch (error) {
        const known = toAppError(error)
        await write(error instanceof AppError && isQuestion(error) ? 'unconfirmed' : 'denied', {
          detail: known.message,
        })
        throw error
      }
      const start = now()
      // If the audit line cannot be written, the change is not sent.
      if (tier !== 'read') {
        await write('started')
        options.guests.forget()
      }
      try {
        const answer = await send()
        const logged = write('done', { ms: now() - start, ...(isUpid(answer) && { detail: answer }) })
        // A read does not wait for the audit log.
        if (tier === 'read') logged.catch(options.onerror ?? (() => {}))
        else await logged
        return answer
      } catch (error) {
        await write('failed', { ms: now() - start, detail: toAppError(error).message })
        throw error
      }
    },
  }
}

const authorize = async (
  options: GateOptions,
  operation: Operation,
  caller: Caller,
  tier: Tier,
): Promise<void> => {
  const { settings, rate, own } = options
  rate.take(caller.who)
  const affected = affectedGuests(operation)
  const guests = await describeGuests(options, affected, tier, caller.signal)
  const names = equivalentNames({ tool: caller.tool, action: caller.action }, operation)
  const ruleInput: RuleInput = { names, tier, operation, guests: guests.touched }
  const rule = firstRule(settings.rules, ruleInput)
  if (rule?.effect === 'deny') throw forbidden(operation, rule)
  if (tier === 'read') return
  if (settings.readOnly) throw readOnly(operation)
  if (!settings.allowElevated && rule?.effect !== 'allow') throw needsElevated(operation, tier)
  refuseProtected(protectionOf(settings, own), [...guests.touched, ...created(affected)])
  if (tier === 'destructive' || rule?.effect === 'confirm') {
    await requireConfirmation(options, operation, caller, guests.touched)
  }
}

const protectionOf = (settings: ProxmoxToolsConfig, own: Protection['own']): Protection => ({
  own,
  vmids: settings.protectedVmids,
  tags: settings.protectedTags,
  pools: settings.protectedPools,
})

/** A guest that does not exist yet can only be protected by its VMID. */
const created = (affected: AffectedGuests) => affected.created.map(vmid => ({ vmid }))

const describeGuests = async (
  { guests, settings }: GateOptions,
  affected: AffectedGuests,
  tier: Tier,
  signal: AbortSignal,
): Promise<{ touched: (Guest | { vmid: number })[] }> => {
  if (tier === 'read' && !needsGuests(settings.rules))
    return { touched: affected.touched.map(vmid => ({ vmid })) }
  if (affected.all) {
    const { all: of } = affected
    const everyone = await guests.all(signal)
    return { touched: of === 'cluster' ? everyone : everyone.filter(guest => guest.node === of.node) }
  }
  return {
    touched: await Promise.all(
      affected.touched.map(async vmid => (await guests.find(vmid, signal)) ?? { vmid }),
    ),
  }
}

const forbidden = (operation: Operation, rule: Rule) =>
  new AppError('denied', `A rule of the configuration forbids ${operation.method} ${showPath(operation)}.`, {
    hint: 'Only the user can change proxmoxTools.rules in the configuration.',
    details: { rule },
  })

const readOnly = (operation: Operation) =>
  new AppError('denied', `Proxmox is read-only: ${operation.method} ${showPath(operation)} was not sent.`, {
    hint: 'The user has set PROXMOX_SAFE_MODE or proxmoxTools.readOnly.',
  })

const needsElevated = (operation: Operation, tier: Tier) =>
  new AppError('denied', `${operation.method} ${showPath(operation)} is ${tier} and changes are off.`, {
    hint: 'Ask the user to set PROXMOX_ALLOW_ELEVATED=true, or to allow it with a rule in the configuration.',
  })

const isQuestion = (error: AppError) => error.name === 'ConfirmationNeeded'
