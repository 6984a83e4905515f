import type { Selected, Toolset } from './toolset.ts'

/** Facts about this installation for the instructions, provided by the daemon. */
export interface InstructionsContext {
  readonly runtimes: readonly { readonly name: string; readonly ready: boolean; readonly reason?: string }[]
  /** Configured presets, besides script, claude and custom. */
  readonly agents: readonly string[]
  /** Names only. */
  readonly secrets: readonly string[]
  /** Problems of the configuration, one sentence each. */
  readonly notes: readonly string[]
}

export interface InstructionsOptions {
  readonly context: InstructionsContext
  readonly selected: Selected
  readonly available: readonly Toolset[]
  readonly readOnly: boolean
  /** The session has use_toolset. */
  readonly canLoad?: boolean
}

/** Clients truncate instructions at 2 KB, some of them in the middle of a word. */
export const MAX_BYTES = 2048

/** Explains how the tools work together and what is configured. */
export const instructions = (options: InstructionsOptions): string => {
  const essential = [...howTo(options), ...configured(options.context)].join('\n')
  const all = [essential, ...extras(options)].reduce((text, line) =>
    Buffer.byteLength(text) + Buffer.byteLength(line) + 1 <= MAX_BYTES ? `${text}\n${line}` : text,
  )
  return cut(all)
}

const howTo = ({ selected, readOnly }: InstructionsOptions): string[] => {
  if (!selected.toolsets.some(toolset => toolset.name === 'jobs')) return ['Deputy.']
  if (readOnly)
    return [
      'Deputy runs jobs on isolated machines. This connection is read-only: view jobs, but do not start or end them.',
    ]
  return [
    'Deputy runs scripts, builds and AI agents on isolated machines and brings back output, artifacts and exit status.',
    'Flow: submit_job with wait_seconds for a small job; otherwise submit_job → get_job_result (wait_seconds: 50) until finished. Jobs outlive calls and clients: giving up a call never ends a job, only cancel_job does. Resources job://{id}, job://{id}/log, job://{id}/artifacts/{path}.',
    "A job sees only its manifest: files, workspace, env; it starts in /work. No network unless manifest.network asks. lifecycle: 'persistent' keeps the machine: run more in it with manifest.machine (its machine_id), end it with delete_job.",
  ]
}

const configured = ({ runtimes, agents, secrets }: InstructionsContext): string[] => {
  const ready = runtimes.filter(runtime => runtime.ready).map(runtime => runtime.name)
  const lines = [
    ready.length > 0
      ? `Runtimes ready: ${names(ready)}.`
      : 'No runtime is ready: jobs wait or fail. The user should run: deputy doctor',
  ]
  if (agents.length > 0) lines.push(`Agent presets: ${names(agents)}.`)
  lines.push(secrets.length > 0 ? `Secrets, by name: ${names(secrets)}.` : 'No secrets are configured.')
  return lines
}

const extras = ({ context, selected, available, readOnly, canLoad }: InstructionsOptions): string[] => {
  const missing = context.runtimes.filter(runtime => !runtime.ready)
  const others = available.filter(toolset => !selected.toolsets.includes(toolset))
  return [
    ...selected.toolsets.flatMap(toolset =>
      toolset.instructions && !readOnly ? [toolset.instructions] : [],
    ),
    ...missing.map(
      ({ name, reason }) => `Not ready: ${name}${reason ? ` (${[...reason].slice(0, 160).join('')})` : ''}.`,
    ),
    ...selected.problems,
    ...context.notes,
    ...(others.length > 0
      ? [
          `Not enabled: ${others.map(({ name, summary }) => `${name} (${summary})`).join(', ')}; ${canLoad ? 'load them with use_toolset' : 'the user enables them with --toolsets'}.`,
        ]
      : []),
  ]
}

const MAX_NAMES = 12

const names = (all: readonly string[]): string =>
  all.length <= MAX_NAMES
    ? all.join(', ')
    : `${all.slice(0, MAX_NAMES).join(', ')} and ${all.length - MAX_NAMES} more`

const cut = (text: string): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_BYTES) return text
  // With `stream`, the decoder omits an incomplete character at the end.
  return `${new TextDecoder().decode(bytes.subarray(0, MAX_BYTES - 3), { stream: true })}…`
}
