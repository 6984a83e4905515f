import { expect, it } from 'vitest'

/**
 * Every reachable state of two daemons, one job and the lease protocol of postgres-lease.ts. Times are counted in
 * ticks: `leaseLeft` until the lease expires, `held` since when it is held without a gap, both up to one term.
 */
interface Daemon {
  /** Whether the fencing token that the process has is the one in the database. */
  readonly hasToken: boolean
  /** Whether the process works: it has registered and has not noticed that it was fenced. */
  readonly isServing: boolean
  readonly isInTransaction: boolean
  readonly supervises: boolean
  readonly isGone: boolean
  readonly leaseLeft: number
  readonly held: number
}

interface State {
  readonly daemons: readonly [Daemon, Daemon]
  readonly owner: 0 | 1
  /** Ticks since the database was back after an outage; a term when there was none. */
  readonly sinceOutage: number
}

/** What the protocol relies on. Each test without one of them must find a violation. */
interface Rules {
  readonly checksToken: boolean
  readonly locksRow: boolean
  readonly waitsForOwnTerm: boolean
  readonly restartsWhenFenced: boolean
}

const RULES: Rules = { checksToken: true, locksRow: true, waitsForOwnTerm: true, restartsWhenFenced: true }
const TERM = 3

type Step = State | { readonly violation: string }

const change = (state: State, which: 0 | 1, part: Partial<Daemon>): State => ({
  ...state,
  daemons: state.daemons.map((daemon, index) => (index === which ? { ...daemon, ...part } : daemon)) as [
    Daemon,
    Daemon,
  ],
})

const tick = (state: State): State => ({
  ...state,
  sinceOutage: Math.min(TERM, state.sinceOutage + 1),
  daemons: state.daemons.map(daemon => ({
    ...daemon,
    leaseLeft: Math.max(0, daemon.leaseLeft - 1),
    held: daemon.leaseLeft === 0 ? daemon.held : Math.min(TERM, daemon.held + 1),
  })) as [Daemon, Daemon],
})

/** The database is away until all leases have expired; connections and their transactions are gone. */
const outage = (state: State): State => ({
  ...state,
  sinceOutage: 0,
  daemons: state.daemons.map(daemon => ({ ...daemon, leaseLeft: 0, isInTransaction: false })) as [
    Daemon,
    Daemon,
  ],
})

const begin = (state: State, which: 0 | 1, rules: Rules): State => {
  const { hasToken, leaseLeft, held } = state.daemons[which]
  if (rules.checksToken && !hasToken)
    // The process lets go of everything, or, without that rule, goes on with a new token.
    return rules.restartsWhenFenced
      ? change(state, which, { isServing: false, supervises: false })
      : change(state, which, { hasToken: true, isGone: false, leaseLeft: TERM, held: 0 })
  return change(state, which, { isInTransaction: true, leaseLeft: TERM, held: leaseLeft === 0 ? 0 : held })
}

const commit = (state: State, which: 0 | 1): Step =>
  state.daemons[which].supervises && state.owner !== which
    ? { violation: 'a daemon wrote to a job that another daemon owns' }
    : change(state, which, { isInTransaction: false })

/** Part of a transaction of `which`. */
const fence = (state: State, which: 0 | 1, rules: Rules): Step | undefined => {
  const other = which === 0 ? 1 : 0
  const { isGone, leaseLeft, isInTransaction } = state.daemons[other]
  if (isGone || leaseLeft > 0 || (rules.locksRow && isInTransaction)) return undefined
  if (rules.waitsForOwnTerm && state.daemons[which].held < TERM) return undefined
  if (state.sinceOutage < TERM)
    return { violation: 'a daemon was fenced before it had a term to renew after an outage' }
  return change(state, other, { hasToken: false, isGone: true })
}

/** Part of a transaction of `which`: takes the job of a daemon that was fenced. */
const adopt = (state: State, which: 0 | 1): State | undefined =>
  state.owner === which || !state.daemons[state.owner].isGone
    ? undefined
    : { ...change(state, which, { supervises: true }), owner: which }

const register = (state: State, which: 0 | 1): State =>
  change(state, which, {
    ...{ hasToken: true, isServing: true, isGone: false, leaseLeft: TERM, held: 0 },
    supervises: state.owner === which,
  })

const kill = (state: State, which: 0 | 1): State =>
  change(state, which, { hasToken: false, isServing: false, isInTransaction: false, supervises: false })

const next = (state: State, rules: Rules): Step[] => {
  const steps: (Step | undefined)[] = [tick(state), outage(state)]
  for (const which of [0, 1] as const) {
    const { isServing, isInTransaction } = state.daemons[which]
    // A daemon that does nothing for a while is suspended: every step of it may come late.
    if (isInTransaction)
      steps.push(commit(state, which), fence(state, which, rules), adopt(state, which), kill(state, which))
    else if (isServing) steps.push(begin(state, which, rules), kill(state, which))
    else steps.push(register(state, which))
  }
  return steps.filter(step => step !== undefined)
}

const START: Daemon = {
  ...{ hasToken: true, isServing: true, isInTransaction: false, isGone: false, leaseLeft: TERM, held: 0 },
  supervises: false,
}

/** Visits every reachable state. Returns how many there are, or the first violation. */
const explore = (rules: Rules): number | string => {
  const start: State = { daemons: [{ ...START, supervises: true }, START], owner: 0, sinceOutage: TERM }
  const seen = new Set([JSON.stringify(start)])
  const open = [start]
  for (let state = open.pop(); state !== undefined; state = open.pop())
    for (const step of next(state, rules)) {
      if ('violation' in step) return step.violation
      const key = JSON.stringify(step)
      if (!seen.has(key)) open.push(step)
      seen.add(key)
    }
  return seen.size
}

it('lets no write of a fenced daemon land, in any order of steps', () => {
  expect(explore(RULES)).toBeGreaterThan(1000)
})

it.each(['checksToken', 'locksRow', 'restartsWhenFenced'] as const)('needs the rule %s', rule => {
  expect(explore({ ...RULES, [rule]: false })).toBe('a daemon wrote to a job that another daemon owns')
})

it('needs the rule waitsForOwnTerm', () => {
  expect(explore({ ...RULES, waitsForOwnTerm: false })).toBe(
    'a daemon was fenced before it had a term to renew after an outage',
  )
})
