import type { ProxmoxRule as Rule } from '../../../../config/proxmox-tools.ts'
import type { Guest } from '../row-context.ts'
import type { Tier } from '../table/define-row.ts'
import type { Operation } from './api-operation.ts'
import type { Name } from './equivalent-tools.ts'

export interface RuleInput {
  /** The called tool first, then all equivalent tools. */
  readonly names: readonly Name[]
  readonly tier: Tier
  readonly operation: Operation
  /** All affected guests; those not found in the cluster only have a VMID. */
  readonly guests: readonly (Guest | { readonly vmid: number })[]
}

/**
 * Returns the first rule that matches. A `deny` rule matches if any guest matches. An `allow` rule must match all
 * guests, otherwise a call for several guests could include a forbidden one.
 */
export const firstRule = (rules: readonly Rule[], input: RuleInput): Rule | undefined =>
  rules.find(rule => fits(rule, input))

/** Whether the rules need more of a guest than its VMID. */
export const needsGuests = (rules: readonly Rule[]): boolean => rules.some(rule => rule.pools ?? rule.tags)

const fits = (rule: Rule, { names, tier, operation, guests }: RuleInput): boolean => {
  // Allowing a tool does not allow the equivalent tools.
  const meant = rule.effect === 'allow' ? names.slice(0, 1) : names
  if (!meant.some(name => isNamed(rule, name))) return false
  if (rule.tiers && !rule.tiers.includes(tier)) return false
  if (rule.nodes && !rule.nodes.some(pattern => nodesOf(operation).some(node => glob(pattern, node))))
    return false
  if (!rule.vmids && !rule.pools && !rule.tags) return true
  if (guests.length === 0) return false
  const fit = (guest: RuleInput['guests'][number]) => guestFits(rule, guest)
  return rule.effect === 'allow' ? guests.every(fit) : guests.some(fit)
}

const isNamed = (rule: Rule, { tool, action }: Name): boolean =>
  (rule.tools?.some(pattern => glob(pattern, tool)) ?? true) &&
  (rule.actions?.some(pattern => glob(pattern, action)) ?? true)

const guestFits = (rule: Rule, guest: RuleInput['guests'][number]): boolean => {
  if (rule.vmids && !inRanges(rule.vmids, guest.vmid)) return false
  const known = 'node' in guest ? guest : undefined
  if (rule.pools && !(known?.pool && rule.pools.includes(known.pool))) return false
  return !rule.tags || (known?.tags.some(tag => rule.tags!.includes(tag)) ?? false)
}

export const inRanges = (ranges: readonly string[], vmid: number): boolean =>
  ranges.some(text => {
    const [first = '', last = first] = text.split('-')
    return vmid >= Number(first) && vmid <= Number(last)
  })

const nodesOf = ({ segments, params }: Operation): string[] => {
  const named = [params.target, params.node].filter(value => typeof value === 'string')
  return segments[0] === 'nodes' && segments[1] ? [segments[1], ...named] : named
}

const glob = (pattern: string, text: string): boolean =>
  new RegExp(`^${pattern.split('*').map(escapeRegExp).join('.*')}$`).test(text)

const escapeRegExp = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
