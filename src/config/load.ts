import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { didYouMean } from '../jobs/nearest.ts'
import { SANDBOX_FIRST, VM_FIRST } from '../jobs/provider-order.ts'
import { isRecord, valueAt } from '../jobs/records.ts'
import { applyClusterEnvironment } from '../nodes/cluster-variables.ts'
import { parseCluster } from '../nodes/inventory.ts'
import { keysAt } from '../nodes/schema-issue.ts'
import type { Home } from './home.ts'
import { type Config, configSchema, ENVIRONMENT, type EnvironmentVariable } from './schema.ts'

export interface LoadedConfig {
  readonly config: Config
  /** Every value with its origin. */
  readonly settings: readonly Setting[]
  /** Likely mistakes that do not stop the daemon. */
  readonly warnings: readonly string[]
}

export interface Setting {
  readonly path: string
  readonly value: unknown
  /** `default`, `env DEFAULT_CPU`, or the path of the file. */
  readonly origin: string
}

type Tree = Record<string, unknown>

/** Environment over file over default. An invalid value or an unknown key is an error that names it. */
export const loadConfig = (home: Home, env: Readonly<Record<string, string | undefined>>): LoadedConfig => {
  const origins = new Map<string, string>()
  const tree = fromFile(home.configFile, origins)
  for (const variable of ENVIRONMENT) fromVariable(tree, variable, env[variable.name], origins)
  const parsed = configSchema.safeParse(withSections(tree))
  if (!parsed.success) throw invalid(parsed.error.issues, origins, home)
  const { cluster, warnings } = withCluster(parsed.data.cluster, env, origins)
  const { defaults } = parsed.data
  const order = defaults.order ?? (origins.has('proxmox.template') ? VM_FIRST : SANDBOX_FIRST)
  const config = { ...parsed.data, cluster, defaults: { ...defaults, order: [...order] } }
  return { config, settings: flatten(config, origins), warnings }
}

/**
 * Applies the CLUSTER_* variables. Some names contain a node id (CLUSTER_<ID>_HOST), so the file is parsed first.
 */
const withCluster = (
  cluster: Config['cluster'],
  env: Readonly<Record<string, string | undefined>>,
  origins: Map<string, string>,
): { cluster: Config['cluster']; warnings: string[] } => {
  const applied = applyClusterEnvironment(parseCluster(cluster), env)
  for (const [key, name] of Object.entries(applied.origins)) {
    origins.set(`cluster.${key.split(/[.[]/)[0]}`, `env ${name}`)
  }
  return { cluster: applied.config, warnings: applied.warnings }
}

const fromFile = (file: string, origins: Map<string, string>): Tree => {
  if (!existsSync(file)) return {}
  let parsed: unknown
  try {
    // JSON is valid YAML. The parser is loaded only when there is a file to parse.
    const { parse } = createRequire(import.meta.url)('yaml') as typeof import('yaml')
    parsed = parse(readFileSync(file, 'utf8')) ?? {}
  } catch (error) {
    throw new AppError(
      'invalid',
      `${file} cannot be read: ${error instanceof Error ? error.message.split('\n')[0] : error}`,
      {
        hint: `Fix ${file}, or rename it to use the defaults.`,
      },
    )
  }
  if (!isRecord(parsed))
    throw new AppError('invalid', `${file} does not contain settings.`, {
      hint: `Start it with, for example:\n  defaults:\n    timeout: 600`,
    })
  for (const path of leaves(parsed)) origins.set(path, file)
  return parsed
}

const fromVariable = (
  tree: Tree,
  variable: EnvironmentVariable,
  text: string | undefined,
  origins: Map<string, string>,
): void => {
  if (text === undefined || text === '') return
  const [section, key] = variable.path.split('.') as [string, string?]
  const value = convert(variable, text)
  tree[section] = key === undefined ? value : { ...(tree[section] as Tree | undefined), [key]: value }
  origins.set(variable.path, `env ${variable.name}`)
}

const convert = (variable: EnvironmentVariable, text: string): unknown => {
  switch (variable.type) {
    case 'number': {
      const value = Number(text)
      if (Number.isNaN(value)) throw badVariable(variable, text, 'a number')
      return value
    }
    case 'boolean':
      if (/^(1|true|yes|on)$/i.test(text)) return true
      if (/^(0|false|no|off)$/i.test(text)) return false
      throw badVariable(variable, text, "'true' or 'false'")
    case 'list':
      return text
        .split(',')
        .map(part => part.trim())
        .filter(part => part !== '')
    case 'string':
      return text
  }
}

const badVariable = (variable: EnvironmentVariable, text: string, wanted: string): AppError =>
  new AppError('invalid', `Invalid environment variable ${variable.name}='${text}': expected ${wanted}.`, {
    hint: `Correct or unset ${variable.name}; it sets ${variable.path}.`,
  })

/** Settings that are not sections. */
const VALUES: readonly string[] = ['store', 'secrets', 'agents']

/** zod fills the defaults of a section only when the section exists. */
const withSections = (tree: Tree): Tree => {
  const sections = Object.keys(configSchema.shape).filter(key => !VALUES.includes(key))
  return { ...Object.fromEntries(sections.map(section => [section, {}])), ...tree }
}

const invalid = (issues: readonly z.core.$ZodIssue[], origins: Map<string, string>, home: Home): AppError => {
  const problems = issues.flatMap(issue => {
    const at = issue.path.map(String).join('.')
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map(
        key =>
          `unknown setting '${at ? `${at}.` : ''}${key}'${didYouMean(key, keysAt(configSchema, issue.path))}`,
      )
    const origin = origins.get(at)
    return [`'${at}' ${issue.message}${origin === undefined ? '' : ` (from ${origin})`}`]
  })
  const wrong = issues.map(issue => origins.get(issue.path.map(String).join('.')))
  // If all invalid values come from the environment, the hint names the variables and not the file.
  const variables = new Set(wrong.flatMap(origin => origin?.match(/^env (.+)/)?.[1] ?? []))
  const where = wrong.every(origin => origin?.startsWith('env '))
    ? [...variables].join(', ')
    : home.configFile
  return new AppError('invalid', `Invalid configuration: ${problems.join('; ')}.`, {
    hint: `Fix ${where}. deputy config explain lists every setting with its origin.`,
    details: { problems },
  })
}

/** Lists and free-form records count as one value each; sections are traversed. */
const leaves = (tree: object, prefix = ''): string[] =>
  Object.entries(tree).flatMap(([key, value]) =>
    isRecord(value) && prefix.split('.').length <= 1
      ? leaves(value, `${prefix}${key}.`)
      : [`${prefix}${key}`],
  )

const flatten = (config: Config, origins: Map<string, string>): Setting[] =>
  leaves(config).map(path => ({
    path,
    value: withoutPassword(valueAt(config, path.split('.'))),
    origin: origins.get(path) ?? 'default',
  }))

/** Clients may read the settings, but not the password in the address of a database. */
const withoutPassword = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/^(postgres(?:ql)?:\/\/[^/@:]*):[^/@]*@/, '$1:***@') : value
