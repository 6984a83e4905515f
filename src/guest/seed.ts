import { AppError } from '../jobs/errors.ts'
import { type IsoFile, writeIso } from './iso.ts'
import { RUNNER } from './runner.ts'

export interface SeedOptions {
  /** Unique per machine, or cloud-init takes it for a reboot. */
  readonly instanceId: string
  readonly hostname: string
  /** Of the network device; without it cloud-init chooses one by itself. */
  readonly macAddress?: string
  /** Where the runner reports; absent when the guest agent is the channel. */
  readonly callback?: CallbackAddress
}

export interface CallbackAddress {
  readonly url: string
  readonly token: string
  /** The certificate of an HTTPS listener that no public CA signed. */
  readonly certificate?: string
}

export interface Seed {
  readonly metaData: string
  readonly userData: string
  readonly vendorData: string
  readonly networkConfig: string
}

export const RUNNER_PATH = '/var/lib/deputy/runner'
export const CALLBACK_PATH = '/var/lib/deputy/callback'
export const CERTIFICATE_PATH = '/var/lib/deputy/callback.pem'

/**
 * What cloud-init reads. It is JSON, which is YAML without its surprises, and everything that is not ours
 * is base64 inside: no value can add a key.
 */
export const buildSeed = ({ instanceId, hostname, macAddress, callback }: SeedOptions): Seed => {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(hostname)) {
    throw new AppError('invalid', `"${hostname}" is no name for a machine.`)
  }
  return {
    metaData: plain({ 'instance-id': instanceId, 'local-hostname': hostname }),
    userData: `#cloud-config\n${plain({
      write_files: callback
        ? [file(RUNNER_PATH, '0700', RUNNER), ...callbackFiles(callback)]
        : [file(RUNNER_PATH, '0700', RUNNER)],
      ...(callback ? { runcmd: [['/bin/sh', RUNNER_PATH]] } : {}),
    })}`,
    // Served empty on purpose: cloud-init asks again and again for what is not there.
    vendorData: '#cloud-config\n{}\n',
    networkConfig: macAddress === undefined ? '' : plain(dhcpOn(macAddress)),
  }
}

export const seedIso = (seed: Seed): Buffer => {
  const files: IsoFile[] = [
    { name: 'meta-data', content: Buffer.from(seed.metaData) },
    { name: 'user-data', content: Buffer.from(seed.userData) },
    { name: 'vendor-data', content: Buffer.from(seed.vendorData) },
    // An empty one would mean no network at all.
    ...(seed.networkConfig === ''
      ? []
      : [{ name: 'network-config', content: Buffer.from(seed.networkConfig) }]),
  ]
  return writeIso('cidata', files)
}

/** The address of a machine that has no network: its requests are fetched through the guest agent. */
export const MAILBOX = 'mailbox'

/** Three lines: address, token, certificate file. All are of our own making and hold no white space. */
export const callbackText = ({ url, token, certificate }: CallbackAddress): string => {
  for (const value of [url, token]) {
    if (!/^[\x21-\x7e]+$/.test(value))
      throw new AppError('invalid', 'A callback address must be one word of ASCII.')
  }
  return `${url.replace(/\/+$/, '')}\n${token}\n${certificate === undefined ? '-' : CERTIFICATE_PATH}\n`
}

const callbackFiles = (callback: CallbackAddress) => [
  file(CALLBACK_PATH, '0600', callbackText(callback)),
  ...(callback.certificate === undefined ? [] : [file(CERTIFICATE_PATH, '0600', callback.certificate)]),
]

const file = (path: string, permissions: string, content: string) => ({
  path,
  permissions,
  owner: 'root:root',
  encoding: 'b64',
  content: Buffer.from(content).toString('base64'),
})

/**
 * cloud-init finds a device by its address whatever manages the network. Patterns are for netplan alone:
 * for systemd-networkd and ifupdown it would configure a device named `primary`.
 */
/**
 * The form that Proxmox VE itself writes. Version 2 matches a device but does not rename it, and ifupdown then
 * waits for one that has the name of the entry.
 */
const dhcpOn = (macAddress: string) => ({
  version: 1,
  config: [
    { type: 'physical', name: 'eth0', mac_address: macAddress.toLowerCase(), subnets: [{ type: 'dhcp4' }] },
  ],
})

const plain = (value: unknown): string => `${JSON.stringify(value)}\n`
