import { access } from './access.ts'
import { agent } from './agent.ts'
import { backup } from './backup.ts'
import { ceph } from './ceph.ts'
import { certs } from './certs.ts'
import { cluster } from './cluster.ts'
import { consoles } from './console.ts'
import type { Toolset } from './define.ts'
import { firewall } from './firewall.ts'
import { guests } from './guests.ts'
import { ha } from './ha.ts'
import { nodes } from './nodes.ts'
import { notify } from './notify.ts'
import { sdn } from './sdn.ts'
import { storage } from './storage.ts'

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
