import { join } from 'node:path'
import type { ProxmoxToolsConfig } from '../../../config/proxmox-tools.ts'
import type { Environment } from '../../../proxmox/env-variables.ts'
import type { Toolset } from '../../toolset.ts'
import type { Approvals } from './policy/pending-approvals.ts'
import type { Protection } from './policy/protected-guests.ts'
import { proxmoxToolsets } from './proxmox-toolsets.ts'
import type { ProxmoxApi } from './row-context.ts'
import { createProxmoxService } from './service.ts'
import { createPctExec } from './ssh/pct-exec.ts'
import { parseSshSettings } from './ssh/ssh-settings.ts'

export interface ProxmoxToolsOptions {
  readonly api: ProxmoxApi
  readonly config: ProxmoxToolsConfig
  /** Contains PROXMOX_SSH_*. */
  readonly env: Environment
  readonly stateDir: string
  readonly ownDirs: readonly string[]
  /** Identifies the machines of Deputy's jobs, which no tool may change. */
  readonly own: Protection['own']
}

/** Creates the Proxmox toolsets of a daemon with a configured cluster. */
export const createProxmoxToolsets = ({
  api,
  config,
  env,
  stateDir,
  ownDirs,
  own,
}: ProxmoxToolsOptions): { toolsets: Toolset[]; approvals: Approvals } => {
  const directory = join(stateDir, 'proxmox')
  const ssh = parseSshSettings(env)
  const service = createProxmoxService({
    api,
    own,
    settings: config,
    stateDir: directory,
    ownDirs,
    ...(ssh && { lxc: createPctExec({ settings: ssh, stateDir: directory }) }),
  })
  return { toolsets: proxmoxToolsets(service), approvals: service.approvals }
}
