import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, createCluster } from '../cluster/cluster.ts'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'

/** The user's nodes, or nothing where none are configured. */
export const openCluster = (options: {
  home: Home
  config: Config
  env: NodeJS.ProcessEnv
}): Cluster | undefined => {
  const { home, config, env } = options
  if (config.cluster.nodes.length === 0) return undefined
  const stateDirectory = join(home.stateDir, 'cluster')
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 })
  return createCluster({
    config: config.cluster,
    owner: ownerOf(stateDirectory),
    stateDirectory,
    runtimeDirectory: join(home.runtimeDir, 'ssh'),
    env,
  })
}

/** Names this installation on the nodes: what another one runs there is none of our business. */
const ownerOf = (directory: string): string => {
  const file = join(directory, 'owner')
  try {
    const known = readFileSync(file, 'utf8').trim()
    if (/^[0-9a-f]{12}$/.test(known)) return known
  } catch {
    // Not there yet.
  }
  const owner = randomBytes(6).toString('hex')
  writeFileSync(file, `${owner}\n`, { mode: 0o600 })
  return owner
}
