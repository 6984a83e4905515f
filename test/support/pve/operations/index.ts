import type { Operation } from '../operation.ts'
import { accessOperations } from './access.ts'
import { agentOperations } from './agent.ts'
import { cloneOperations } from './clone.ts'
import { clusterOperations } from './cluster.ts'
import { configOperations } from './config.ts'
import { firewallOperations } from './firewall.ts'
import { lifecycleOperations } from './lifecycle.ts'
import { migrateOperations } from './migrate.ts'
import { nodeOperations } from './node.ts'
import { poolOperations } from './pools.ts'
import { snapshotOperations } from './snapshots.ts'
import { storageOperations } from './storage.ts'
import { taskOperations } from './tasks.ts'

/** Everything the emulator can do. Its API documentation is made from this table. */
export const OPERATIONS: readonly Operation[] = [
  ...clusterOperations,
  ...accessOperations,
  ...nodeOperations,
  ...poolOperations,
  ...lifecycleOperations,
  ...configOperations,
  ...cloneOperations,
  ...migrateOperations,
  ...snapshotOperations,
  ...agentOperations,
  ...firewallOperations,
  ...storageOperations,
  ...taskOperations,
]
