import { AppError, toAppError } from '../../jobs/errors.ts'
import type { Check, Readiness } from '../../ports.ts'
import { checkRights } from '../../proxmox/permissions.ts'
import { checkCallback } from './check-callback.ts'
import { checkBridge, checkCertificate, checkClones } from './check-cluster.ts'
import type { Drive } from './drives.ts'
import { chooseInjection, type Injection } from './injection.ts'
import { findTemplate, listStorages, type Template } from './inventory.ts'
import { bridgeOf } from './net-device.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'
import type { Reception } from './reception.ts'

/** What works and what is missing, each with the command that mends it. */
export const checkProxmox = async (
  runtime: ProxmoxRuntimeOptions,
  reception: Reception,
  signal: AbortSignal,
): Promise<Readiness> => {
  const checks: Check[] = []
  const step = async <T>(
    name: string,
    work: () => Promise<{ message: string; value: T }>,
  ): Promise<T | undefined> => {
    try {
      const { message, value } = await work()
      checks.push({ name, status: 'ok', message })
      return value
    } catch (error) {
      checks.push(failed(name, error))
      return undefined
    }
  }
  const version = await step('reachable', async () => {
    const value = await runtime.proxmox.version({ signal })
    return {
      message: `Proxmox VE ${value.version} answers at ${runtime.proxmox.settings.endpoints[0]!.host}`,
      value,
    }
  })
  if (version === undefined) return { runtime: 'proxmox', ready: false, checks }
  const add = async (name: string, work: () => Promise<Check | undefined>): Promise<void> => {
    const check = await work().catch(error => failed(name, error))
    if (check) checks.push(check)
  }
  await add('certificate', async () => checkCertificate(runtime))
  const template = await step('template', async () => {
    const value = await findTemplate(runtime.proxmox, runtime.template, signal)
    return { message: `template ${value.vmid} on ${value.node}`, value }
  })
  if (template) {
    checks.push(...templateChecks(template))
    await add('bridge', () => checkBridge(runtime, template, signal))
    await add('clones', () => checkClones(runtime, template, signal))
    const injection = await chooseInjection(runtime, template, signal)
    checks.push(...(await storageChecks(runtime, template, injection, signal)))
    checks.push(await rightsCheck(runtime, template, version.major, signal))
  }
  await add('callback', () => checkCallback(runtime, reception))
  return { runtime: 'proxmox', ready: checks.every(check => check.status !== 'failed'), checks }
}

const templateChecks = ({ vmid, config }: Template): Check[] => {
  const rival = Object.entries(config).find(([, value]) => /:.*cloudinit/.test(String(value)))
  const agent = /^(1|enabled=1)/.test(String(config.agent ?? ''))
  return [
    agent
      ? { name: 'guest agent', status: 'ok', message: 'the template enables the guest agent' }
      : {
          name: 'guest agent',
          status: 'warning',
          message: 'the template does not enable the guest agent',
          fix: `qm set ${vmid} --agent enabled=1`,
        },
    rival
      ? {
          name: 'cloud-init drive',
          status: 'warning',
          message: `the template has a cloud-init drive (${rival[0]}), which our seed replaces`,
          fix: `qm set ${vmid} --delete ${rival[0]}`,
        }
      : {
          name: 'cloud-init drive',
          status: 'ok',
          message: 'no drive of the template competes with the seed',
        },
    config.net0 === undefined
      ? {
          name: 'network',
          status: 'failed',
          message: 'the template has no network device',
          fix: `qm set ${vmid} --net0 virtio,bridge=vmbr0,firewall=1`,
        }
      : /firewall=1/.test(String(config.net0))
        ? { name: 'network', status: 'ok', message: 'the network device is filtered' }
        : {
            name: 'network',
            status: 'warning',
            message: 'the network device of the template is not filtered',
            fix: `qm set ${vmid} --net0 ${String(config.net0)},firewall=1`,
          },
  ]
}

const storageChecks = async (
  runtime: ProxmoxRuntimeOptions,
  template: Template,
  injection: Injection,
  signal: AbortSignal,
): Promise<Check[]> => {
  try {
    const storages = await listStorages(runtime.proxmox, template.node, signal)
    if (injection !== 'iso')
      return [
        {
          name: 'seed',
          status: 'ok',
          message:
            injection === 'http' ? 'machines fetch their seed over HTTP' : 'the guest agent takes the seed',
        },
      ]
    const seeds = storages.find(one => one.storage === runtime.seedStorage)
    if (seeds?.content.includes('iso'))
      return [{ name: 'seed', status: 'ok', message: `seed images go to storage ${seeds.storage}` }]
    return [
      {
        name: 'seed',
        status: 'failed',
        message: seeds
          ? `storage ${seeds.storage} takes no ISO images`
          : `storage ${runtime.seedStorage} is not to be seen on ${template.node}`,
        fix: `pvesm set ${runtime.seedStorage} --content iso`,
      },
    ]
  } catch (error) {
    return [failed('seed', error)]
  }
}

const rightsCheck = async (
  runtime: ProxmoxRuntimeOptions,
  template: Template,
  major: number,
  signal: AbortSignal,
): Promise<Check> => {
  const { credentials } = runtime.proxmox.settings
  const { network, seedStorage, pool } = runtime
  const bridge = network.bridge ?? bridgeOf(template.config)
  const storagesOf = (...kinds: Drive['kind'][]) => [
    ...new Set(template.drives.filter(drive => kinds.includes(drive.kind)).map(drive => drive.storage)),
  ]
  try {
    const { missing, commands } = await checkRights(
      runtime.proxmox.request,
      {
        major,
        template: template.vmid,
        pool,
        diskStorages: storagesOf('disk', 'cloudinit'),
        imageStorages: storagesOf('cdrom'),
        user: credentials.user,
        ...(credentials.kind === 'token' ? { tokenId: credentials.id } : {}),
        ...(seedStorage === undefined ? {} : { seedStorage }),
        ...(bridge === undefined ? {} : { bridge }),
        ...(network.zone === undefined ? {} : { zone: network.zone }),
      },
      { signal },
    )
    if (missing.length === 0)
      return { name: 'rights', status: 'ok', message: 'the token has every right that jobs need' }
    const listed = missing.map(one => `${one.privileges.join(', ')} on ${one.path}`).join('; ')
    return { name: 'rights', status: 'failed', message: `missing: ${listed}`, fix: commands.join('\n') }
  } catch (error) {
    return failed('rights', error)
  }
}

const failed = (name: string, thrown: unknown): Check => {
  const error = thrown instanceof AppError ? thrown : toAppError(thrown)
  return {
    name,
    status: 'failed',
    message: error.message,
    ...(error.hint === undefined ? {} : { fix: error.hint }),
  }
}
