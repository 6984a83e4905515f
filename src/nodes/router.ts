import { AppError } from '../jobs/errors.ts'
import {
  type CompiledRequirements,
  compileRequirements,
  describeRequirements,
  firstUnmet,
  type Requirements,
  type Traits,
} from './requirements.ts'

/** The result of one probe; percentages from 0 to 100. */
export interface Measurement {
  cpu: number
  memory: number
  load: number
  cores: number
  /** Percentage of the disk with the home directory that is in use. */
  disk?: number
  latencyMs: number
  /** Milliseconds on the caller's clock. */
  at: number
}

export interface Candidate {
  id: string
  traits: Traits
  priority: number
  specialties: ReadonlySet<string>
  maxTasks: number
  running: number
  measurement: Measurement | undefined
  /** Why the node takes no command now, as a clause: "is unreachable since…". */
  blocked?: string | undefined
  overloaded?: boolean | undefined
  /** The node is this computer; the router picks it only when no other node fits. */
  isLocal?: boolean | undefined
}

interface RouteRequest {
  requires?: Requirements
  /** Topics of the command, compared with the specialties of a node. */
  topics?: readonly string[]
  now: number
}

export interface Choice {
  id: string
  score: number
  reason: string
}

const STALE_AFTER_MS = 60_000
/** Percent. A node with a full disk is avoided: its workspace and output need room. */
const FULL_DISK = 95
const WEIGHTS = { cpu: 0.3, load: 0.25, memory: 0.15, tasks: 0.3 }

/**
 * Picks the node with the best score among those that meet all requirements. When no node fits, the error names the
 * requirement that failed on each node.
 */
export const route = (candidates: readonly Candidate[], request: RouteRequest): Choice => {
  const wanted = compileRequirements(request.requires ?? {})
  let best: Candidate | undefined
  let bestScore = Number.NEGATIVE_INFINITY
  for (const candidate of candidates) {
    if (!wanted.empty && firstUnmet(wanted, candidate.traits) !== undefined) continue
    if (candidate.blocked !== undefined || candidate.running >= candidate.maxTasks) continue
    const score = scoreOf(candidate, request)
    if (score > bestScore) {
      best = candidate
      bestScore = score
    }
  }
  if (!best) throw noNodeFits(candidates, wanted)
  return { id: best.id, score: bestScore, reason: explain(best, wanted, request) }
}

/** Between about -1 and 1.5. Half the weight replaces a measurement that is missing or out of date. */
const scoreOf = (candidate: Candidate, request: RouteRequest): number => {
  const { measurement } = candidate
  const free = 1 - candidate.running / candidate.maxTasks
  let score = WEIGHTS.tasks * free + (5 - candidate.priority) * 0.04
  if (request.topics !== undefined && sharedTopic(candidate, request.topics) !== undefined) score += 0.2
  if (candidate.overloaded) score -= 0.5
  if (candidate.isLocal) score -= 10
  if (measurement === undefined) return score + 0.35
  if ((measurement.disk ?? 0) >= FULL_DISK) score -= 0.5
  const loadPerCore = measurement.load / Math.max(1, measurement.cores)
  const measured =
    WEIGHTS.cpu * (1 - measurement.cpu / 100) +
    WEIGHTS.load * (1 - Math.min(loadPerCore, 2) / 2) +
    WEIGHTS.memory * (1 - measurement.memory / 100)
  const trust = request.now - measurement.at > STALE_AFTER_MS ? 0.5 : 1
  return score + measured * trust + 0.35 * (1 - trust) - Math.min(measurement.latencyMs, 1000) / 5000
}

const sharedTopic = (candidate: Candidate, topics: readonly string[]): string | undefined => {
  for (const topic of topics) if (candidate.specialties.has(topic)) return topic
  return undefined
}

const explain = (candidate: Candidate, wanted: CompiledRequirements, request: RouteRequest): string => {
  const { measurement } = candidate
  const reasons = [
    `${candidate.running} of ${candidate.maxTasks} tasks running`,
    `priority ${candidate.priority}`,
  ]
  if (measurement) {
    const perCore = measurement.load / Math.max(1, measurement.cores)
    reasons.unshift(
      `${Math.round(measurement.cpu)} % cpu`,
      `load ${perCore.toFixed(2)} per core`,
      `${Math.round(measurement.memory)} % memory`,
      `${measurement.latencyMs} ms away`,
    )
  } else reasons.unshift('not measured yet')
  const topic = request.topics && sharedTopic(candidate, request.topics)
  if (topic !== undefined) reasons.push(`"${topic}" is its specialty`)
  const fits = wanted.empty ? '' : ` fits ${describeRequirements(wanted)} and`
  return `${candidate.id}${fits} scored best: ${reasons.join(', ')}.`
}

const noNodeFits = (candidates: readonly Candidate[], wanted: CompiledRequirements): AppError => {
  if (candidates.length === 0) {
    return new AppError('not_found', 'The inventory has no nodes.', {
      hint: 'Add one: deputy nodes add user@host',
    })
  }
  const checked = candidates.map(candidate => ({ candidate, clause: firstUnmet(wanted, candidate.traits) }))
  const fitting = checked.filter(({ clause }) => clause === undefined).map(({ candidate }) => candidate)
  if (fitting.length === 0) {
    return new AppError(
      'unsupported',
      `No node fits ${describeRequirements(wanted)}: ${listed(checked.map(({ candidate, clause }) => `${candidate.id} ${clause}`))}`,
      { hint: 'Show what each node has: deputy nodes list. Add a node: deputy nodes add user@host' },
    )
  }
  const why = fitting.map(
    node => `${node.id} ${node.blocked ?? `runs ${node.running} of ${node.maxTasks} tasks`}`,
  )
  const what = wanted.empty ? 'No node' : `No node that fits ${describeRequirements(wanted)}`
  return new AppError('unavailable', `${what} can take a command now: ${listed(why)}`, {
    hint: 'Check the nodes: deputy nodes check. A full node takes commands again when one ends.',
    details: { full: fitting.some(node => node.blocked === undefined) },
  })
}

const listed = (clauses: readonly string[]): string =>
  clauses.length <= 8
    ? clauses.join('; ')
    : `${clauses.slice(0, 8).join('; ')}; and ${clauses.length - 8} more`
