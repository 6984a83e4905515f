import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Provider } from '../../src/ports.ts'
import { createProxmoxProvider } from '../../src/providers/proxmox/proxmox-provider.ts'
import type { ProxmoxProviderOptions } from '../../src/providers/proxmox/proxmox-provider-options.ts'
import { silentLogger } from '../../src/proxmox/logger.ts'
import { createProxmox } from '../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../src/proxmox/proxmox-settings.ts'
import { blobsWithoutStore } from './blobs.ts'
import { startEngine, type TestEngine } from './engine.ts'
import { type Emulator, type EmulatorOptions, startEmulator } from './pve/emulator.ts'
import { type FastGuestOptions, fastGuests } from './pve/guests/fast.ts'
import { removeDirectory } from './remove-directory.ts'

export interface LabOptions {
  readonly emulator?: EmulatorOptions
  readonly guests?: FastGuestOptions
  readonly provider?: Partial<ProxmoxProviderOptions>
  readonly engine?: Parameters<typeof startEngine>[1]
}

/** Emulated cluster, guests as processes, the runtime and a real engine on top. */
export const openLab = async (options: LabOptions = {}) => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-lab-'))
  const emulator: Emulator = await startEmulator({ guests: fastGuests(options.guests), ...options.emulator })
  let callbackPort = 0

  const makeProvider = (more: Partial<ProxmoxProviderOptions> = {}): Provider =>
    createProxmoxProvider({
      proxmox: createProxmox(parseSettings(emulator.env())),
      blobs: blobsWithoutStore(join(directory, 'blobs')),
      log: silentLogger,
      owner: 'lab',
      limit: 8,
      poolSize: 0,
      template: 'agent-template',
      pool: 'jobs',
      vmids: { first: 100_000, last: 100_999 },
      seedStorage: 'seeds',
      injection: 'auto',
      channel: 'callback',
      network: { firewall: true, privateAddresses: false },
      callback: { host: '127.0.0.1', port: callbackPort },
      defaults: { cpu: 1, memory: 2 ** 29, disk: undefined },
      parallel: { clones: 4, starts: 4, deletes: 4 },
      keep: { artifactFiles: 100, artifactBytes: 2 ** 24 },
      graceSeconds: 1,
      heartbeatSeconds: 1,
      bootSeconds: 300,
      ...options.provider,
      ...more,
    })

  const engines: TestEngine[] = []
  const open = async (
    provider: Provider,
    more: Parameters<typeof startEngine>[1] = {},
  ): Promise<TestEngine> => {
    const engine = await startEngine([provider], {
      ...options.engine,
      directory,
      ...more,
      config: config => {
        config.supervision.provisioning = 40
        options.engine?.config?.(config)
        more?.config?.(config)
      },
    })
    engines.push(engine)
    return engine
  }

  return {
    emulator,
    directory,
    makeProvider,
    open,
    /** A fixed port, so that machines find the daemon again after a restart. */
    usePort: (port: number) => {
      callbackPort = port
    },
    /** Guests that are not templates. */
    machines: () => [...emulator.state.vms.values()].filter(vm => vm.config.template !== '1'),
    seeds: () => [...emulator.state.volumes.values()].filter(volume => volume.content === 'iso'),
    close: async () => {
      for (const engine of engines) await engine.close().catch(() => {})
      await emulator.close()
      removeDirectory(directory)
    },
  }
}

export type Lab = Awaited<ReturnType<typeof openLab>>
