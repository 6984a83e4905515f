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
  /** The public key of a self-signed HTTPS listener, from `pinOf`. */
  readonly pin?: string
  /** `name:port:address`, if the machine may not use DNS. */
  readonly resolve?: string
}

export interface Seed {
  readonly metaData: string
  readonly userData: string
  readonly vendorData: string
  readonly networkConfig: string
}

export const RUNNER_PATH = '/var/lib/deputy/runner'
export const CALLBACK_PATH = '/var/lib/deputy/callback'

/**
 * Starts the runner as a unit of its own. Inside cloud-final.service the system would count as starting for as long as
 * the job runs; inside the service of the guest agent it would end when an update restarts that. A unit ignores
 * SIGPIPE unless told otherwise, and the commands of jobs would inherit that. Without systemd there are no such groups.
 */
export const START_RUNNER = `cd /
{
  systemd-run --quiet --collect --unit=deputy-runner --property=TasksMax=infinity \
    --property=IgnoreSIGPIPE=no /bin/sh ${RUNNER_PATH} ||
    exec setsid /bin/sh ${RUNNER_PATH}
} </dev/null >/dev/null 2>&1 &`

/**
 * The files that cloud-init reads. The YAML is written as JSON, and contents are base64, so that no value can add a
 * key.
 */
export const buildSeed = ({ instanceId, hostname, macAddress, callback }: SeedOptions): Seed => {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(hostname)) {
    throw new AppError('invalid', `"${hostname}" is no name for a machine.`)
  }
  return {
    metaData: plain({ 'instance-id': instanceId, 'local-hostname': hostname }),
    userData: `#cloud-config\n${plain({
      write_files: callback
        ? [file(RUNNER_PATH, '0700', RUNNER), file(CALLBACK_PATH, '0600', callbackText(callback))]
        : [file(RUNNER_PATH, '0700', RUNNER)],
      ...(callback ? { runcmd: [['/bin/sh', '-c', START_RUNNER]] } : {}),
    })}`,
    // Empty on purpose: cloud-init retries for a long time if it is missing.
    vendorData: '#cloud-config\n{}\n',
    networkConfig: macAddress === undefined ? '' : plain(dhcpOn(macAddress)),
  }
}

export const seedIso = (seed: Seed): Buffer => {
  const files: IsoFile[] = [
    { name: 'meta-data', content: Buffer.from(seed.metaData) },
    { name: 'user-data', content: Buffer.from(seed.userData) },
    { name: 'vendor-data', content: Buffer.from(seed.vendorData) },
    // An empty file would disable the network.
    ...(seed.networkConfig === ''
      ? []
      : [{ name: 'network-config', content: Buffer.from(seed.networkConfig) }]),
  ]
  return writeIso('cidata', files)
}

/** The address of a machine that has no network: its requests are fetched through the guest agent. */
export const AGENT_CALLBACK = 'agent'

/** Four lines: address, token, pinned key, resolved name. */
export const callbackText = ({ url, token, pin = '-', resolve = '-' }: CallbackAddress): string => {
  for (const value of [url, token, pin, resolve]) {
    if (!/^[\x21-\x7e]+$/.test(value))
      throw new AppError('invalid', 'A callback address must be one word of ASCII.')
  }
  return `${[url.replace(/\/+$/, ''), token, pin, resolve].join('\n')}\n`
}

const file = (path: string, permissions: string, content: string) => ({
  path,
  permissions,
  owner: 'root:root',
  encoding: 'b64',
  content: Buffer.from(content).toString('base64'),
})

/**
 * The form that Proxmox VE itself writes: cloud-init finds the device by its MAC whatever manages the network.
 * Version 2 matches a device but does not rename it, and ifupdown then waits for one that has the name of the entry.
 */
const dhcpOn = (macAddress: string) => ({
  version: 1,
  config: [
    { type: 'physical', name: 'eth0', mac_address: macAddress.toLowerCase(), subnets: [{ type: 'dhcp4' }] },
  ],
})

const plain = (value: unknown): string => `${JSON.stringify(value)}\n`
