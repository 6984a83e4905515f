import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProxmoxToolsConfig } from '../../../config/proxmox-tools.ts'
import { createGuestIndex, type GuestIndex } from './guest-index.ts'
import { createAudit } from './policy/audit.ts'
import { createCallRateLimiter } from './policy/call-rate-limiter.ts'
import { createGate, type Gate } from './policy/gate.ts'
import { type Approvals, createApprovals } from './policy/pending-approvals.ts'
import { createPlanTokens } from './policy/plan-tokens.ts'
import type { Protection } from './policy/protected-guests.ts'
import type { LxcExec, ProxmoxApi } from './row-context.ts'

export interface ServiceOptions {
  readonly api: ProxmoxApi
  readonly settings: ProxmoxToolsConfig
  /** Identifies the machines of Deputy's jobs, which no tool may change. */
  readonly own: Protection['own']
  /** Directory for the audit log, secrets and restored files. */
  readonly stateDir: string
  /** More directories whose files are never uploaded. */
  readonly ownDirs?: readonly string[]
  readonly lxc?: LxcExec
  readonly now?: () => number
}

/** State shared by all Proxmox tools; the daemon creates it once. */
export interface ProxmoxService {
  readonly api: ProxmoxApi
  readonly gate: Gate
  /** Calls that wait for the user's approval. */
  readonly approvals: Approvals
  readonly guests: GuestIndex
  readonly settings: ProxmoxToolsConfig
  readonly filesDir: string
  readonly ownDirs: readonly string[]
  readonly lxc: LxcExec | undefined
  saveSecret(label: string, content: string): Promise<string>
}

export const createProxmoxService = (options: ServiceOptions): ProxmoxService => {
  const { api, settings, own, stateDir, lxc, now = Date.now } = options
  const guests = createGuestIndex(api, { now })
  const approvals = createApprovals({ now })
  const gate = createGate({
    settings,
    own,
    guests,
    now,
    plans: createPlanTokens({ now }),
    approvals,
    audit: createAudit(join(stateDir, 'audit.jsonl'), now),
    rate: createCallRateLimiter({
      perMinute: settings.callsPerMinute,
      burst: Math.max(30, settings.callsPerMinute / 4),
      now,
    }),
  })
  return {
    api,
    gate,
    approvals,
    guests,
    settings,
    filesDir: join(stateDir, 'files'),
    ownDirs: [stateDir, ...(options.ownDirs ?? [])],
    lxc,
    saveSecret: secretFiles(join(stateDir, 'secrets')),
  }
}

const secretFiles = (directory: string) => async (label: string, content: string) => {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const name = label
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
  const file = join(directory, `${name}-${randomBytes(4).toString('hex')}`)
  await writeFile(file, content, { mode: 0o600, flag: 'wx' })
  return file
}
