import { AppError, toAppError } from '../../jobs/errors.ts'
import type { Check, Readiness } from '../../ports.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { CallbackServer } from './callback-server.ts'
import { checkCallback } from './check-callback.ts'
import {
  checkBridge,
  checkCertificate,
  checkClones,
  checkFirewall,
  checkNodes,
  checkPool,
} from './check-cluster.ts'
import { rightsCheck } from './check-rights.ts'
import { checkSeed, checkTemplate } from './check-template.ts'
import { createInjectionChoice } from './choose-injection.ts'
import { findTemplate, listGuests } from './cluster-guests.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

/** Checks the setup; each failed check names the command that fixes it. */
export const checkProxmox = async (
  provider: ProxmoxProviderOptions,
  callbackServer: CallbackServer,
  signal: AbortSignal,
): Promise<Readiness> => {
  const { proxmox, template: wanted } = provider
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
  const add = async (name: string, work: () => Promise<Check | undefined>): Promise<void> => {
    const check = await work().catch(error => failed(name, error))
    if (check) checks.push(check)
  }

  const version = await step('reachable', async () => {
    const value = await proxmox.version({ signal })
    const { host } = proxmox.settings.endpoints[0]!
    return { message: `Proxmox VE ${value.version} answers at ${host}`, value }
  })
  if (version === undefined) return { runtime: 'proxmox', ready: false, checks }
  await add('certificate', async () => checkCertificate(provider))
  const template = await step('template', async () => {
    const value = await findTemplate(proxmox, wanted, await listGuests(proxmox, signal), signal)
    return { message: `template ${value.vmid} on ${value.node}`, value }
  })
  await add('pool', () => checkPool(provider, signal))
  if (template) {
    const injection = await step('injection', async () => {
      const value = await createInjectionChoice(provider)(template, signal)
      return { message: WAYS[value], value }
    })
    checks.push(...checkTemplate(provider, template, injection))
    await add('bridge', () => checkBridge(provider, template, signal))
    await add('clones', () => checkClones(provider, template, signal))
    if (injection === 'iso') await add('seed', () => checkSeed(provider, template, signal))
    await add('rights', () => rightsCheck(provider, { template, injection, major: version.major }, signal))
  }
  await add('firewall', () => checkFirewall(provider, signal))
  await add('nodes', () => checkNodes(provider, signal))
  await add('callback', () => checkCallback(provider, callbackServer))
  return { runtime: 'proxmox', ready: checks.every(check => check.status !== 'failed'), checks }
}

const WAYS = {
  iso: 'machines get their runner from an image',
  http: 'machines fetch their runner over HTTP',
  agent: 'machines get their runner through the guest agent',
}

const failed = (name: string, thrown: unknown): Check => {
  const error = thrown instanceof AppError ? thrown : toAppError(thrown)
  return {
    // TLS errors appear in the first call; report them as the certificate check.
    name: proxmoxDetails(thrown)?.kind === 'tls' ? 'certificate' : name,
    status: 'failed',
    message: error.message,
    ...(error.hint === undefined ? {} : { fix: error.hint }),
  }
}
