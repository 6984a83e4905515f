import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { detailsOf } from '../../../src/providers/proxmox/vm-details.ts'
import { freePort } from '../../support/free-port.ts'
import { has } from '../../support/has.ts'
import { startEmulator } from '../../support/pve/emulator.ts'
import { fastGuests } from '../../support/pve/guests/fast.ts'
import { powerOff } from '../../support/pve/operations/power.ts'
import { describeWorkspacePatches } from './patch-contract.ts'
import { describeProviderContract } from './provider-contract.ts'

const missing = ['curl', 'git', 'python3', 'setsid'].find(tool => !has(tool))

const emulator = await startEmulator({ guests: fastGuests() })
afterAll(() => emulator.close())
/** Machines must find the daemon again after its restart. */
const port = await freePort()

const vmOf = (machine: Parameters<typeof detailsOf>[0]) =>
  emulator.state.vms.get(detailsOf(machine).vmid ?? 0)

/** The directory of a guest, where its runner keeps its notes. */
const guestDirectories = (vmid: number): string[] =>
  readdirSync(tmpdir())
    .filter(name => name.startsWith(`guest-${vmid}-`))
    .map(name => join(tmpdir(), name))

const skip = missing === undefined ? undefined : `${missing} is not installed`
const subject = {
  module: 'providers/proxmox/proxmox-from-config.js',
  factory: 'openProxmoxProvider',
  options: {
    env: emulator.env(),
    owner: 'contract',
    limit: 16,
    poolSize: 0,
    template: 'agent-template',
    pool: 'jobs',
    vmids: { first: 200_000, last: 200_999 },
    seedStorage: 'seeds',
    injection: 'auto',
    channel: 'callback',
    network: { firewall: true, privateAddresses: false },
    callback: { host: '127.0.0.1', port },
    defaults: { cpu: 1, memory: 2 ** 29 },
    parallel: { clones: 8, starts: 8, deletes: 8 },
    keep: { artifactFiles: 1000, artifactBytes: 2 ** 28 },
    graceSeconds: 1,
    heartbeatSeconds: 1,
  },
}

describeWorkspacePatches('proxmox', { subject, skip })

describeProviderContract('proxmox', {
  skip,
  ...subject,
  sessions: false,
  orderGap: 0.6,
  hasEnded: (_, { machine }) =>
    guestDirectories(detailsOf(machine).vmid ?? 0).some(directory =>
      existsSync(join(directory, 'run/deputy/ended')),
    ),
  killHolders: (_, { machine }) => {
    const vm = vmOf(machine)
    if (vm) void powerOff(vm)
  },
  leftovers: () => [
    ...[...emulator.state.vms.values()].filter(vm => vm.config.template !== '1').map(vm => `VM ${vm.vmid}`),
    ...[...emulator.state.volumes.values()]
      .filter(volume => volume.content === 'iso')
      .map(volume => volume.volid),
  ],
})
