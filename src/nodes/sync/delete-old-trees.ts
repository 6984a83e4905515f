import { readFileSync } from 'node:fs'
import type { SshTarget } from '../ssh/ssh-arguments.ts'
import type { Ssh } from '../ssh/ssh-session.ts'

export interface TreeLimits {
  /** Copies that were not used for so many days are deleted. */
  days: number
  /** Limit for all copies together; the least recently used are deleted first. */
  kibibytes: number
}

const DEFAULTS: TreeLimits = { days: 14, kibibytes: 10 * 1024 * 1024 }

/**
 * Deletes old copies of trees on a node. Copies that were used within the last hour stay: a command may be reading one.
 * The deletion runs in the background on the node.
 */
export const deleteOldTrees = async (request: {
  ssh: Ssh
  target: SshTarget
  signal: AbortSignal
  owner: string
  limits?: TreeLimits | undefined
}): Promise<void> => {
  const { days, kibibytes } = request.limits ?? DEFAULTS
  const script = `set -- ${request.owner} ${Math.max(0, days - 1)} ${kibibytes}\n${program()}`
  await request.ssh.run({ target: request.target, signal: request.signal, script })
}

const program = (): string => readFileSync(new URL('./delete-old-trees.sh', import.meta.url), 'utf8')
