import { randomUUID } from 'node:crypto'
import { ownProperty } from '../../jobs/own-property.ts'
import { usage } from '../args/parse.ts'
import type { FlagValues, Parsed } from '../args/spec.ts'
import type { MANIFEST_FLAGS } from '../commands/job-flags.ts'
import { readFileFlags } from './files.ts'
import { isManifestFile, readManifest } from './read.ts'
import { looksLikeScript, quoteArgv } from './shell.ts'

type Flags = FlagValues<typeof MANIFEST_FLAGS>
export type LooseManifest = Record<string, unknown>

interface Options {
  readonly command: string
  readonly env: NodeJS.ProcessEnv
}

/**
 * The manifest that a command line asks for: a file or stdin to start from, the command, then the flags.
 * The daemon validates it; this only converts flags.
 */
export const manifestFromInput = async (
  { flags, args, rest }: Pick<Parsed<typeof MANIFEST_FLAGS>, 'flags' | 'args' | 'rest'>,
  options: Options,
): Promise<LooseManifest> => {
  const words = [...args]
  let source = flags.manifest
  // `run job.yaml` and `run -`; after `--` everything is a command.
  if (source === undefined && rest === undefined && words.length === 1 && isManifestFile(words[0]!))
    source = words.shift()
  if (source === undefined && rest === undefined && words.length === 1 && /\.ya?ml$/i.test(words[0]!))
    throw usage(`The manifest ${words[0]} does not exist.`, options.command)
  const manifest: LooseManifest = source === undefined ? {} : await readManifest(source)
  const argv = rest === undefined ? words : [...words, ...rest]
  if (argv.length > 0) addCommand(manifest, argv, flags)
  else if (source === undefined)
    throw usage(`No command given. Usage: deputy ${options.command} -- COMMAND`, options.command)
  await addFlags(manifest, flags, options)
  // A submit that is sent again after a cut connection must not become a second job.
  manifest.idempotency_key ??= `cli-${randomUUID()}`
  return manifest
}

/** One word with shell syntax in it is a script; several are an argument list, passed on exactly. */
const addCommand = (manifest: LooseManifest, argv: readonly string[], flags: Flags): void => {
  const agent = flags.agent ?? manifest.agentType ?? 'script'
  if (agent !== 'script' && agent !== 'custom') {
    manifest.task = argv.join(' ')
    return
  }
  const script = argv.length === 1 && looksLikeScript(argv[0]!)
  manifest.task = script ? argv[0] : quoteArgv(argv)
  if (!script) manifest.agent = { ...(manifest.agent as object | undefined), command: [...argv] }
}

const addFlags = async (manifest: LooseManifest, flags: Flags, options: Options): Promise<void> => {
  const set = (key: string, value: unknown): void => {
    if (value !== undefined) manifest[key] = value
  }
  const merge = (key: string, value: LooseManifest): void => {
    const given = Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined))
    if (Object.keys(given).length > 0) manifest[key] = { ...(manifest[key] as object | undefined), ...given }
  }
  const append = (key: string, values: readonly unknown[]): void => {
    if (values.length > 0) manifest[key] = [...((manifest[key] as unknown[] | undefined) ?? []), ...values]
  }
  set('agentType', flags.agent)
  set('agents', flags.agents)
  merge('agent', { claudeModel: flags.model })
  set('timeout', flags.timeout)
  set('queueTimeout', flags['queue-timeout'])
  merge(
    'env',
    pairs(flags.env, '--env', options.command, name => ownProperty(options.env, name)),
  )
  append('secrets', flags.secret)
  append('files', await readFileFlags(flags.file))
  append('artifacts', flags.artifact)
  set('runtime', flags.runtime)
  set('network', flags.network === undefined ? undefined : network(flags.network))
  merge('resources', { cpu: flags.cpu, memory: flags.memory, disk: flags.disk })
  merge('requires', { ...requirements(flags.requires, options.command), node: flags.node })
  set('vmTemplate', flags.template)
  set('image', flags.image)
  set('pull', flags.pull)
  set('platform', flags.platform)
  set('gpus', flags.gpus)
  set('lifecycle', flags.keep ? 'persistent' : undefined)
  set('lease', flags.lease)
  set('machine', flags.machine)
  merge(
    'labels',
    pairs(flags.label, '--label', options.command, () => ''),
  )
  set('priority', flags.priority)
  set('retries', flags.retries)
  set('idempotency_key', flags.key)
}

const pairs = (
  texts: readonly string[],
  flag: string,
  command: string,
  missing: (name: string) => string | undefined,
): LooseManifest => {
  const values: LooseManifest = {}
  for (const text of texts) {
    const at = text.indexOf('=')
    const name = at === -1 ? text : text.slice(0, at)
    const value = at === -1 ? missing(name) : text.slice(at + 1)
    if (name === '') throw usage(`${flag} needs a name before '=', not '${text}'.`, command)
    if (value === undefined && flag === '--env')
      throw usage(
        `--env ${name} copies the variable ${name}, which is not set. Use --env ${name}=VALUE.`,
        command,
      )
    if (value === undefined) throw usage(`${flag} needs NAME=VALUE, not '${text}'.`, command)
    values[name] = value
  }
  return values
}

const network = (text: string): string | string[] =>
  text === 'none' || text === 'full'
    ? text
    : text
        .split(',')
        .map(domain => domain.trim())
        .filter(domain => domain !== '')

const LABEL = 'label.'

/** `os=linux,arch=arm64,capabilities=docker+gpu,label.zone=eu`. */
export const requirements = (text: string | undefined, command: string): LooseManifest => {
  if (text === undefined) return {}
  const given = pairs(text.split(','), '--requires', command, () => undefined)
  for (const [name, value] of Object.entries(given)) {
    if (!['os', 'arch', 'capabilities', 'capability', 'node'].includes(name) && !/^label\../.test(name))
      throw usage(`--requires knows os, arch, capabilities and label.NAME, not '${name}'.`, command)
    if (value === '') throw usage(`--requires ${name}= needs a value.`, command)
  }
  const { capabilities, capability, ...others } = given
  const labels = Object.entries(others).filter(([name]) => name.startsWith(LABEL))
  const rest: LooseManifest = {
    ...Object.fromEntries(Object.entries(others).filter(([name]) => !name.startsWith(LABEL))),
    ...(labels.length > 0 && {
      labels: Object.fromEntries(labels.map(([name, value]) => [name.slice(LABEL.length), value])),
    }),
  }
  const listed = [capabilities, capability].flatMap(value =>
    value === undefined ? [] : String(value).split('+'),
  )
  return listed.length === 0 ? rest : { ...rest, capabilities: listed }
}
