import type { Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type Certificate, createCertificate } from '../../../src/guest/certificate.ts'
import { createKeyedSemaphore } from '../../../src/proxmox/keyed-semaphore.ts'
import { createFaults, type Faults } from './faults.ts'
import type { GuestDriver } from './guests/driver.ts'
import { noGuests } from './guests/none.ts'
import { OPERATIONS } from './operations/index.ts'
import { powerOff, powerOn, stopAll } from './operations/power.ts'
import { createPveServer } from './server.ts'
import { buildStandard, type Standard } from './standard.ts'
import { createState, FAST_TIMING, type State, type Timing } from './state.ts'

export interface EmulatorOptions {
  readonly nodes?: readonly string[]
  readonly version?: string
  readonly timing?: Partial<Timing>
  readonly guests?: GuestDriver
  readonly host?: string
  /** Port of the first node; the others get the following ones. 0 lets the system choose. */
  readonly port?: number
  readonly certificate?: Certificate
  readonly reasonOnly?: boolean
}

export interface Emulator {
  readonly state: State
  readonly faults: Faults
  readonly standard: Standard
  readonly certificate: Certificate
  /** One endpoint a node, in the order of the nodes. */
  readonly endpoints: readonly { readonly node: string; readonly host: string; readonly port: number }[]
  /** Each request so far, `METHOD /path?query`. */
  readonly requests: string[]
  /** What a user would set to reach this cluster with its token. */
  env(): Record<string, string>
  /** Switches a node off or on: its listener and everything that runs there. */
  setNode(name: string, up: boolean): Promise<void>
  /** As the HA stack does it when a node is lost: the guest is on another at once, and starts there anew. */
  recover(vmid: number, node: string): Promise<void>
  revokeToken(): void
  close(): Promise<void>
}

/** Of pvedaemon, on each node. */
const WORKERS = 3

/** A Proxmox VE cluster that exists on loopback only. */
export const startEmulator = async (options: EmulatorOptions = {}): Promise<Emulator> => {
  const { nodes = ['pve1', 'pve2'], host = '127.0.0.1', port = 0, guests = noGuests() } = options
  const state = createState({ ...FAST_TIMING, ...options.timing }, options.version)
  const standard = buildStandard(state, nodes)
  const faults = createFaults()
  const certificate =
    options.certificate ??
    createCertificate({ commonName: nodes[0]!, names: [...nodes, 'localhost', '127.0.0.1', '::1'] })
  const requests: string[] = []
  const backend = { state, faults, guests, operations: OPERATIONS, workers: createKeyedSemaphore(WORKERS) }
  const servers = new Map<string, Server>()
  const endpoints: { node: string; host: string; port: number }[] = []

  const open = async (node: string, at: number): Promise<number> => {
    const server = createPveServer({
      backend,
      node,
      certificate,
      reasonOnly: options.reasonOnly ?? false,
      onRequest: line => void requests.push(line),
    })
    await listen(server, at, host)
    servers.set(node, server)
    return (server.address() as AddressInfo).port
  }

  for (const [index, node] of nodes.entries()) {
    endpoints.push({ node, host, port: await open(node, port === 0 ? 0 : port + index) })
  }

  return {
    state,
    faults,
    standard,
    certificate,
    endpoints,
    requests,
    env: () => ({
      PROXMOX_HOST: endpoints.map(one => `${one.host}:${one.port}`).join(','),
      PROXMOX_USER: standard.user,
      PROXMOX_TOKEN_NAME: standard.tokenName,
      PROXMOX_TOKEN_VALUE: standard.secret,
      PROXMOX_SSL_MODE: 'verify',
      PROXMOX_SSL_FINGERPRINT: certificate.fingerprint,
    }),
    setNode: async (name, up) => {
      const node = state.nodes.get(name)!
      if (node.up === up) return
      node.up = up
      if (!up) {
        for (const vm of state.vms.values()) {
          if (vm.node !== name) continue
          await vm.guest?.stop()
          vm.guest = undefined
          vm.status = 'stopped'
        }
        await shut(servers.get(name)!)
      } else await open(name, endpoints.find(one => one.node === name)!.port)
    },
    recover: async (vmid, node) => {
      const vm = state.vms.get(vmid)!
      await powerOff(vm)
      vm.node = node
      await powerOn(backend, vm)
    },
    revokeToken: () => void state.users.get(standard.user)!.tokens.delete(standard.tokenName),
    close: async () => {
      await stopAll(state)
      for (const task of state.tasks.values()) task.abort()
      await Promise.all([...servers.values()].map(shut))
      await Promise.all([...state.tasks.values()].map(task => task.done))
    },
  }
}

const listen = (server: Server, port: number, host: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })

const shut = (server: Server): Promise<void> =>
  new Promise(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
