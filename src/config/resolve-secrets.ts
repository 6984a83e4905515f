import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { readRegularFile } from '../files/regular-file.ts'
import { AppError } from '../jobs/errors.ts'
import { didYouMean } from '../jobs/nearest.ts'
import { ownProperty } from '../jobs/own-property.ts'
import type { Secrets } from '../ports.ts'

/** Source of a secret: `env:NAME`, `file:/path`, `cmd:program arg…`, or an argv array. */
type SecretSource = string | readonly string[]

const run = promisify(execFile)
const MAX_BYTES = 1024 * 1024

/** A source, or a source with restrictions. */
export type SecretEntry = SecretSource | { readonly from: SecretSource }

/** Resolves secrets by name when a job starts. Values are never stored and never appear in errors. */
export const createSecrets = (
  entries: Readonly<Record<string, SecretEntry>>,
  env: Readonly<Record<string, string | undefined>>,
): Secrets => {
  const sources = Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, sourceOf(entry)]))
  return {
    names: () =>
      Object.keys(sources).filter(name => sources[name] !== `env:${name}` || env[name] !== undefined),
    resolve: async (names, signal) => {
      const values = await Promise.all(names.map(name => resolveSecret(name, sources, env, signal)))
      return Object.fromEntries(names.map((name, index) => [name, values[index]!]))
    },
  }
}

const sourceOf = (entry: SecretEntry): SecretSource =>
  typeof entry === 'object' && 'from' in entry ? entry.from : entry

const resolveSecret = async (
  name: string,
  sources: Readonly<Record<string, SecretSource>>,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<string> => {
  const source = ownProperty(sources, name)
  if (source === undefined)
    throw new AppError(
      'invalid',
      `The secret '${name}' is not configured${didYouMean(name, Object.keys(sources))}`,
      {
        hint: `Add it to the configuration: secrets: { ${name}: 'env:${name}' }`,
      },
    )
  const value = await readSource(name, source, env, signal)
  if (value === '') throw unusable(name, 'is empty', source)
  if (value.includes('\0')) throw unusable(name, 'contains a NUL byte', source)
  return value
}

const readSource = async (
  name: string,
  source: SecretSource,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<string> => {
  if (typeof source !== 'string') return command(name, source, signal)
  const [kind, rest] = split(source)
  switch (kind) {
    case 'env': {
      const value = ownProperty(env, rest)
      if (value === undefined) throw unusable(name, `is not in the daemon's environment as ${rest}`, source)
      return value
    }
    case 'file':
      return withoutNewline(
        await readRegularFile(rest, { maxBytes: MAX_BYTES, follow: true }).then(
          content => content.toString('utf8'),
          (error: NodeJS.ErrnoException) => {
            throw unusable(name, `cannot be read from ${rest} (${error.code})`, source)
          },
        ),
      )
    case 'cmd':
      return command(name, rest.trim().split(/\s+/), signal)
    default:
      throw unusable(name, `has an unknown source '${kind}:'`, source)
  }
}

const command = async (name: string, argv: readonly string[], signal: AbortSignal): Promise<string> => {
  const [program, ...args] = argv
  try {
    const { stdout } = await run(program!, args, { signal, timeout: 30_000, maxBuffer: MAX_BYTES })
    return withoutNewline(stdout)
  } catch (error) {
    // The program's output may contain the value, so the error has only its name and exit status.
    const { code } = error as { code?: unknown }
    throw unusable(name, `cannot be read from '${program}' (${code ?? 'terminated'})`, argv)
  }
}

const split = (source: string): [string, string] => {
  const colon = source.indexOf(':')
  return colon === -1 ? [source, ''] : [source.slice(0, colon), source.slice(colon + 1)]
}

const withoutNewline = (text: string): string => text.replace(/\r?\n$/, '')

const unusable = (name: string, problem: string, source: SecretSource): AppError =>
  new AppError('unavailable', `The secret '${name}' ${problem}.`, {
    hint: `Check secrets.${name} (${typeof source === 'string' ? source : 'a command'}), then submit again. deputy config explain shows where it is set.`,
    retryable: false,
  })
