import { access } from './access-tools.ts'
import { agent } from './agent-tools.ts'
import { backup } from './backup-tools.ts'
import { ceph } from './ceph-tools.ts'
import { certs } from './certificate-tools.ts'
import { cluster } from './cluster-tools.ts'
import { consoles } from './console-tools.ts'
import type { Toolset } from './define-row.ts'
import { firewall } from './firewall-tools.ts'
import { guests } from './guest-tools.ts'
import { ha } from './ha-tools.ts'
import { nodes } from './node-tools.ts'
import { notify } from './notification-tools.ts'
import { sdn } from './sdn-tools.ts'
import { storage } from './storage-tools.ts'

export const TABLE: readonly Toolset[] = [
  nodes,
  guests,
  agent,
  storage,
  backup,
  ceph,
  cluster,
  firewall,
  ha,
  sdn,
  access,
  consoles,
  certs,
  notify,
]
