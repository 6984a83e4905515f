import { dirname } from 'node:path/posix'
import { pinOf } from '../../guest/certificate.ts'
import { RUNNER } from '../../guest/runner.ts'
import {
  AGENT_CALLBACK,
  buildSeed,
  CALLBACK_PATH,
  callbackText,
  RUNNER_PATH,
  type Seed,
  START_RUNNER,
  seedIso,
} from '../../guest/seed.ts'
import { smbiosForSeed } from '../../guest/smbios.ts'
import { AppError } from '../../jobs/errors.ts'
import { path } from '../../proxmox/encode.ts'
import { type Address, numericUrl } from './callback-address.ts'
import type { Injection } from './choose-injection.ts'
import { cloudInitDrives, seedDrive } from './drives.ts'
import { createAgentLink } from './guest-agent.ts'
import { nameOf, seedNameOf } from './identity.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import type { SeedImage } from './seed-images.ts'
import type { Known } from './vm-details.ts'
import type { VmRef } from './vm-ref.ts'

export interface InjectorOptions {
  readonly provider: ProxmoxProviderOptions
  address(): Promise<Address>
  publish(name: string, seed: Seed): void
  locked<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
}

/** The credentials and the injection method of one machine. */
export interface MachineSeed {
  readonly machineId: string
  readonly token: string
  readonly injection: Injection
  /** Unguessable: the name is the only protection of the seed. */
  readonly seedName: string
}

const MAC = /(?:[0-9a-f]{2}:){5}[0-9a-f]{2}/i

/** Installs the runner and the callback address in a machine: by ISO image, over HTTP, or through the guest agent. */
export const createInjector = ({ provider, address, publish, locked }: InjectorOptions) => {
  const { proxmox, owner } = provider

  const callbackFor = async (token: string) => {
    const { tls } = provider.callback
    if (provider.channel === 'agent') return { url: AGENT_CALLBACK, token }
    const { url, resolve } = await address()
    return { url, token, ...(resolve && { resolve }), ...(tls && { pin: pinOf(tls.cert) }) }
  }

  /** Runs while the machine is off. Resolves with the attached image, if any. */
  const before = async (
    { present, ...at }: VmRef & { readonly present: Readonly<Record<string, unknown>> },
    { machineId, token, injection, seedName }: MachineSeed,
    note: (more: Known) => Promise<void>,
    signal: AbortSignal,
  ): Promise<SeedImage | undefined> => {
    if (injection === 'agent') return undefined
    const callback = await callbackFor(token)
    const config = path`/nodes/${at.node}/qemu/${at.vmid}/config`
    const macAddress = MAC.exec(String(present.net0 ?? ''))?.[0]
    const seed = buildSeed({
      instanceId: machineId,
      hostname: nameOf(machineId),
      callback,
      // Over HTTP the network is up already when the seed is read, and must stay as it is.
      ...(macAddress === undefined || injection !== 'iso' ? {} : { macAddress }),
    })
    const { drive, rivals } = seedDrive(present)
    if (injection === 'iso') {
      const storage = provider.seedStorage!
      const filename = seedNameOf(owner, machineId)
      const volid = `${storage}:iso/${filename}`
      await note({ seed: volid })
      const image = { node: at.node, storage, content: 'iso' as const, filename, file: seedIso(seed), signal }
      await locked(() => proxmox.upload(image), signal)
      await locked(
        () => proxmox.put(config, { [drive]: `${volid},media=cdrom`, ...without(rivals) }, { signal }),
        signal,
      )
      return { ...at, drive, volid }
    }
    publish(seedName, seed)
    await note({ seedName })
    const smbios = present.smbios1 === undefined ? undefined : String(present.smbios1)
    const smbios1 = smbiosForSeed(smbios, `${numericUrl(await address())}/seed/${seedName}/`)
    await locked(
      () => proxmox.put(config, { smbios1, ...without(cloudInitDrives(present)) }, { signal }),
      signal,
    )
    return undefined
  }

  /** Runs after the machine has started. */
  const after = async (at: VmRef, { token, injection }: MachineSeed, signal: AbortSignal): Promise<void> => {
    if (injection !== 'agent') return
    const agent = createAgentLink(proxmox, at)
    const end = proxmox.clock.now() + provider.bootSeconds * 1000
    while (!(await agent.isUp(signal))) {
      if (proxmox.clock.now() >= end) throw noAgent(at)
      await proxmox.clock.sleep(500, signal)
    }
    const callback = await callbackFor(token)
    const prepare = ['/bin/sh', '-c', `umask 077; mkdir -p ${dirname(RUNNER_PATH)}`]
    const made = await locked(() => agent.exec(prepare, signal), signal)
    if (made.code !== 0) throw noAgent(at)
    const write = (file: string, content: string) =>
      locked(() => agent.writeFile(file, Buffer.from(content), signal), signal)
    await write(RUNNER_PATH, RUNNER)
    await write(CALLBACK_PATH, callbackText(callback))
    // Not retried: the runner is started once.
    await agent.exec(['/bin/sh', '-c', START_RUNNER], signal)
  }

  return { before, after }
}

const without = (drives: readonly string[]) => (drives.length === 0 ? {} : { delete: drives.join(',') })

const noAgent = ({ vmid }: VmRef): AppError =>
  new AppError('timeout', `The guest agent of VM ${vmid} did not answer.`, {
    hint: 'Install and enable qemu-guest-agent in the template, or use another injection.',
  })
