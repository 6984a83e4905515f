import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createCertificate } from '../../../src/guest/certificate.ts'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { freeze } from '../processes.ts'
import type { Provider } from './provider.ts'
import { has } from './tools.ts'

/** The network namespace is this run's own: every port is free. */
const PORT = 8006
const SLOTS = 6
/** A machine that is gone is noticed by its silence at the latest. */
const NOTICED_MS = 45_000
const STAND_IN = fileURLToPath(new URL('./stand-in.js', import.meta.url))

/** VMs on the stand-in; they are processes that end with it. */
export const proxmox: Provider = {
  name: 'proxmox',
  missing: () => {
    const tool = ['curl', 'git', 'python3', 'setsid'].find(name => !has(name))
    return tool && `${tool} is not installed`
  },
  open: async ({ damage, kept }) => {
    const file = join(kept, 'certificate')
    writeFileSync(file, JSON.stringify(createCertificate({ commonName: 'pve1', names: ['127.0.0.1'] })))
    let standIn = await start(file)
    let wasKilled = false
    return {
      env: {
        ...standIn.env,
        PROXMOX_POOL: 'jobs',
        PROXMOX_SEED_STORAGE: 'seeds',
        CALLBACK_HOST: '127.0.0.1',
      },
      place: () => ({ runtime: 'proxmox' }),
      faults: [
        {
          name: 'pve-kill',
          target: 'pve',
          weight: 1,
          strike: async random => {
            const over = damage.begin('proxmox', SLOTS)
            wasKilled = true
            standIn.child.kill('SIGKILL')
            await sleep(random.between(0, 3000))
            standIn = await start(file)
            setTimeout(over, NOTICED_MS).unref()
            return `pid ${standIn.child.pid} came after it`
          },
        },
        {
          name: 'pve-freeze',
          target: 'pve',
          weight: 2,
          strike: async random => {
            const { pid = 0 } = standIn.child
            await freeze(pid, random.between(200, 6000))
            return `pid ${pid}`
          },
        },
      ],
      pids: () => [standIn.child.pid ?? 0],
      leftovers: async () => [
        ...(await leftOnCluster(standIn.env)),
        // A stand-in that is killed leaves the directory of a guest it was just making; nobody else knows of it.
        ...(wasKilled ? [] : readdirSync(tmpdir()).filter(name => name.startsWith('guest-'))),
      ],
      close: async () => void standIn.child.kill(),
    }
  },
}

const start = async (file: string): Promise<{ child: ChildProcess; env: Record<string, string> }> => {
  const child = spawn(process.execPath, [STAND_IN, String(PORT), file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the stand-in ended with ${code}`)
  })
  const [line] = await Promise.race([once(child.stdout, 'data'), ended])
  // Later ends are faults.
  ended.catch(() => {})
  return { child, env: JSON.parse(String(line)) }
}

const leftOnCluster = async (env: Record<string, string>): Promise<string[]> => {
  const client = createProxmox(
    parseSettings({
      ...env,
      PROXMOX_USER: 'root@pam',
      PROXMOX_TOKEN_NAME: '',
      PROXMOX_TOKEN_VALUE: '',
      PROXMOX_PASSWORD: 'emulator',
    }),
  )
  try {
    const vms = await client.get<{ vmid: number; template?: number }[]>('/cluster/resources', { type: 'vm' })
    const nodes = await client.get<{ node: string }[]>('/nodes')
    const seeds = await Promise.all(
      nodes.map(({ node }) => client.get<{ volid: string }[]>(`/nodes/${node}/storage/seeds/content`)),
    )
    return [
      ...vms.filter(({ template }) => template !== 1).map(({ vmid }) => `VM ${vmid}`),
      ...seeds.flat().map(({ volid }) => `seed ${volid}`),
    ]
  } finally {
    await client.close()
  }
}
