import { toAppError } from '../../jobs/errors.ts'
import type { Check, Readiness } from '../../ports.ts'
import { type Engines, engineLabel, INSTALL_HINT } from './container-engine.ts'
import { field, text, usualSockets } from './engine-address.ts'

export interface CheckOptions {
  readonly env: NodeJS.ProcessEnv
  readonly home: string
  readonly image?: string | undefined
  readonly runtimeClass?: string | undefined
  readonly signal: AbortSignal
}

/** For doctor: which engine was found, what it can do, and what is missing. */
export const checkContainer = async (engines: Engines, options: CheckOptions): Promise<Readiness> => {
  const checks = await checksOf(engines, options)
  return { runtime: 'container', ready: checks.every(check => check.status !== 'failed'), checks }
}

const checksOf = async (engines: Engines, options: CheckOptions): Promise<Check[]> => {
  if (!engines.isConfigured()) {
    const places = usualSockets(options.env, options.home).join(', ')
    return [{ ...failed('engine', `no container engine at ${places}`), fix: INSTALL_HINT }]
  }
  try {
    const client = engines.current()
    const { url, source } = client.address
    const { signal } = options
    const version = await client.json({ path: '/version', signal })
    const info = await client.json({ path: '/info', signal })
    const api = text(version, 'ApiVersion')
    return [
      {
        name: 'engine',
        status: 'ok',
        message: `${engineLabel(version)} at ${url} (from ${source}), API ${api}`,
      },
      { name: 'system', status: 'ok', message: describe(info) },
      limitsCheck(info),
      runtimesCheck(info, options.runtimeClass),
      imageCheck(options.image),
    ]
  } catch (thrown) {
    const { message, hint } = toAppError(thrown)
    return [{ ...failed('engine', message), ...(hint !== undefined && { fix: hint }) }]
  }
}

const failed = (name: string, message: string): Check => ({ name, status: 'failed', message })

const describe = (info: unknown): string => {
  const options = field(info, 'SecurityOptions')
  const rootless =
    field(info, 'Rootless') === true ||
    (Array.isArray(options) && options.some(one => /rootless/.test(String(one))))
  return [
    `${text(info, 'OperatingSystem') ?? 'unknown system'} ${text(info, 'Architecture') ?? ''}`.trim(),
    `storage ${text(info, 'Driver') ?? 'unknown'}`,
    `cgroup v${text(info, 'CgroupVersion') ?? '1'}`,
    rootless ? 'rootless' : 'not rootless',
  ].join(', ')
}

const limitsCheck = (info: unknown): Check => {
  const missing = Object.entries({ MemoryLimit: 'memory', PidsLimit: 'processes', CpuCfsQuota: 'CPU' })
    .filter(([name]) => field(info, name) === false)
    .map(([, what]) => what)
  return missing.length === 0
    ? { name: 'limits', status: 'ok', message: 'memory, processes and CPU can be limited' }
    : {
        name: 'limits',
        status: 'warning',
        message: `the engine cannot limit ${missing.join(', ')}`,
        fix: 'Delegate cgroups to the engine: systemctl edit user@.service, [Service] Delegate=cpu memory pids',
      }
}

const runtimesCheck = (info: unknown, wanted: string | undefined): Check => {
  const runtimes = Object.keys(Object(field(info, 'Runtimes'))).filter(name => !name.includes('.'))
  const message = `${runtimes.join(', ') || 'unknown'}; default ${text(info, 'DefaultRuntime') ?? 'unknown'}`
  // Docker also takes the full name of a shim, which it does not list.
  if (wanted === undefined || runtimes.includes(wanted) || wanted.includes('.'))
    return { name: 'runtimes', status: 'ok', message }
  return {
    ...failed('runtimes', `container.runtimeClass is '${wanted}', the engine has ${message}`),
    fix: `Install ${wanted} and add it to "runtimes" in /etc/docker/daemon.json, then: systemctl restart docker`,
  }
}

const imageCheck = (image: string | undefined): Check => ({
  name: 'image',
  status: 'ok',
  message:
    image === undefined
      ? 'jobs must name their image: --image NAME, or set container.image'
      : `jobs without an image use ${image}`,
})
