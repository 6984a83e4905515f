import { isListening } from '../../client/daemon-info.ts'
import { type FlagSpec, type FlagSpecs, GLOBAL_FLAGS } from '../args/spec.ts'
import type { AnyCommand } from '../command.ts'
import { COMMANDS, loadCommand } from '../commands/all-commands.ts'
import type { Context } from '../context.ts'

export interface Candidate {
  readonly value: string
  readonly summary: string
}

/** Completion candidates for the last of `words`, which follow the program's name. */
export const candidates = async (context: Context, words: readonly string[]): Promise<Candidate[]> => {
  const typed = words.at(-1) ?? ''
  const all = words.length <= 1 ? commands() : await inCommand(context, words)
  return all.filter(({ value }) => value.startsWith(typed))
}

const commands = (): Candidate[] =>
  Object.entries(COMMANDS).map(([value, { summary }]) => ({ value, summary }))

const inCommand = async (context: Context, words: readonly string[]): Promise<Candidate[]> => {
  const [name = '', ...given] = words
  if (name === 'help') return commands()
  const command = await loadCommand(name)
  // After `--` comes the user's own command.
  if (!command || given.slice(0, -1).includes('--')) return []
  const flags: FlagSpecs = { ...command.flags, ...GLOBAL_FLAGS }
  const pending = flagNamed(flags, given.at(-2) ?? '')
  if (pending && pending.type !== 'boolean') return values(context, pending)
  if (given.at(-1)?.startsWith('-'))
    return Object.entries(flags).map(([flag, { summary }]) => ({ value: `--${flag}`, summary }))
  const isFirst = given.slice(0, -1).every(word => word.startsWith('-'))
  const verbs = isFirst ? (command.words ?? []).map(value => ({ value, summary: '' })) : []
  const first = given.slice(0, -1).find(word => !word.startsWith('-'))
  const suggested = first === undefined ? [] : plain((await command.suggest?.(context, first)) ?? [])
  return [...verbs, ...suggested, ...(await jobs(context, command))]
}

const flagNamed = (flags: FlagSpecs, word: string): FlagSpec | undefined => {
  if (word.startsWith('--')) return Object.hasOwn(flags, word.slice(2)) ? flags[word.slice(2)] : undefined
  return /^-[a-z]$/i.test(word) ? Object.values(flags).find(({ short }) => short === word[1]) : undefined
}

const plain = (values: readonly string[]): Candidate[] => values.map(value => ({ value, summary: '' }))

const values = async (context: Context, { choices, suggest = [] }: FlagSpec): Promise<Candidate[]> => {
  if (choices !== undefined) return plain(choices)
  if (typeof suggest !== 'string') return plain(suggest)
  if (suggest === 'machines') return machines(context)
  const { loadConfig } = await import('../../config/load.ts')
  const { config } = loadConfig(context.home, context.env)
  if (suggest === 'nodes') return plain(config.cluster.nodes.map(({ id }) => id))
  if (suggest === 'secrets') return plain(Object.keys(config.secrets))
  return plain(['script', 'claude', 'custom', ...Object.keys(config.agents)])
}

const machines = async (context: Context): Promise<Candidate[]> => {
  if (!(await isListening(context.home.socket))) return []
  const kept = await (await context.plainClient()).machines()
  return kept.map(({ machine_id, runtime }) => ({ value: machine_id.slice(-8), summary: runtime }))
}

/** Short ids of the latest jobs. Completion never starts a daemon. */
const jobs = async (context: Context, command: AnyCommand): Promise<Candidate[]> => {
  if (!command.takesJobs || !(await isListening(context.home.socket))) return []
  const client = await context.plainClient()
  const { jobs } = await client.list({ limit: 20 })
  return [
    { value: 'last', summary: 'the latest job' },
    ...jobs.map(({ job_id, status, task }) => ({ value: job_id.slice(-8), summary: `${status}: ${task}` })),
  ]
}
