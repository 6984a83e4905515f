import { readFileSync } from 'node:fs'
import { access, constants, mkdir } from 'node:fs/promises'
import type { Client } from '../client/daemon-client.ts'
import { settingNames } from '../config/setting-names.ts'
import { toAppError } from '../jobs/errors.ts'
import type { Check } from '../ports.ts'
import type { Context } from './context.ts'

/** Runs the checks that need no daemon, then connects to it. If the daemon does not start, its check has the reason. */
export const checkThisComputer = async (
  context: Context,
): Promise<{ checks: Check[]; client: Client | undefined }> => {
  const checks: Check[] = [node(), await directory(context), ...obsolete(context)]
  try {
    const client = await context.client()
    const daemon = await client.daemon()
    const where = daemon.url === null ? daemon.socket : `${daemon.socket} and ${daemon.url}`
    const message = `version ${daemon.version}, process ${daemon.pid}, listens on ${where}`
    checks.push({ name: 'daemon', status: 'ok', message }, ...outdated(context, daemon.pid))
    return { checks, client }
  } catch (thrown) {
    const { message, hint } = toAppError(thrown)
    checks.push({ name: 'daemon', status: 'failed', message, ...(hint !== undefined && { fix: hint }) })
    return { checks, client: undefined }
  }
}

const node = (): Check => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const good = major > 20 || (major === 20 && minor >= 19)
  return {
    name: 'node',
    status: good ? 'ok' : 'failed',
    message: `${process.version} on ${process.platform} ${process.arch}`,
    ...(!good && { fix: 'Install Node.js 20.19 or later' }),
  }
}

/** Settings of mcp-delegation-server that are accepted and have no effect. */
const obsolete = ({ env }: Context): Check[] =>
  env.PROXMOX_ADMIN_PATH
    ? [
        {
          name: 'PROXMOX_ADMIN_PATH',
          status: 'warning',
          message: 'is no longer needed: jobs reach the cluster directly',
          fix: 'unset PROXMOX_ADMIN_PATH',
        },
      ]
    : []

/** Warns about variables that were set after the daemon started. Prints names only, never values. */
const outdated = ({ env }: Context, pid: number): Check[] => {
  const known = environmentOf(pid)
  const changed = known === undefined ? [] : settingNames(env).filter(name => known.get(name) !== env[name])
  if (changed.length === 0) return []
  const [are, them] = changed.length === 1 ? ['is', 'it'] : ['are', 'them']
  return [
    {
      name: 'settings',
      status: 'warning',
      message: `${changed.join(', ')} ${are} set here, but the daemon was started without ${them} or with other values`,
      fix: 'deputy daemon restart',
    },
  ]
}

/** The environment of a process; undefined where it cannot be read. */
const environmentOf = (pid: number): Map<string, string> | undefined => {
  try {
    const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return new Map(entries.map(entry => splitOnce(entry)))
  } catch {
    return undefined
  }
}

const splitOnce = (entry: string): [string, string] => {
  const at = entry.indexOf('=')
  return [entry.slice(0, at), entry.slice(at + 1)]
}

const directory = async ({ home }: Context): Promise<Check> => {
  const name = 'state'
  try {
    await mkdir(home.stateDir, { recursive: true, mode: 0o700 })
    await access(home.stateDir, constants.W_OK)
    return { name, status: 'ok', message: home.stateDir }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return {
      name,
      status: 'failed',
      message: why,
      fix: 'Make it writable, or set DEPUTY_HOME to a directory that is',
    }
  }
}
