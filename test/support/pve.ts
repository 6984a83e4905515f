import { createProxmox, type Proxmox, type ProxmoxOptions } from '../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../src/proxmox/proxmox-settings.ts'
import { type Emulator, type EmulatorOptions, startEmulator } from './pve/emulator.ts'

/** An emulated cluster and clients for it, closed together. */
export const startCluster = async (options: EmulatorOptions = {}) => {
  const emulator = await startEmulator(options)
  const clients: Proxmox[] = []
  const connect = (env: Record<string, string> = {}, more: ProxmoxOptions = {}): Proxmox => {
    const client = createProxmox(parseSettings({ ...emulator.env(), ...env }), more)
    clients.push(client)
    return client
  }
  return {
    emulator,
    connect,
    /** Logged in as root, as the administrator would be. */
    root: () => connect(asRoot(emulator)),
    close: async () => {
      await Promise.all(clients.map(client => client.close()))
      await emulator.close()
    },
  }
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

const asRoot = (emulator: Emulator): Record<string, string> => ({
  PROXMOX_USER: 'root@pam',
  PROXMOX_TOKEN_NAME: '',
  PROXMOX_TOKEN_VALUE: '',
  PROXMOX_PASSWORD: emulator.standard.rootPassword,
})

/** The error that a promise is expected to end with. */
export const failureOf = async (
  promise: Promise<unknown>,
): Promise<Error & { code?: string; hint?: string; details?: unknown; retryable?: boolean }> => {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('this should have failed')
}
