import { execFile } from 'node:child_process'
import type { AddressResolver } from './addresses/address-resolver.ts'
import type { ClusterConfig, ClusterNode } from './inventory.ts'
import type { SshTarget } from './ssh/ssh-arguments.ts'

/**
 * Returns the ssh target of a node, with its address. No address is looked up for an alias of the user's ssh_config
 * and for a node behind a jump host: ssh resolves these itself.
 */
export const createTargetResolver = (
  config: ClusterConfig,
  addresses: AddressResolver,
  env: NodeJS.ProcessEnv,
): ((node: ClusterNode, signal: AbortSignal) => Promise<SshTarget>) => {
  const aliases = new Map<string, Promise<boolean>>()
  return async (node, signal) => {
    const user = node.user ?? config.ssh.user
    const target: SshTarget = {
      id: node.id,
      host: node.host,
      ...(user !== undefined && { user }),
      ...(node.port !== undefined && { port: node.port }),
      ...(node.identity !== undefined && { identity: node.identity }),
      ...(node.jump !== undefined && { jump: node.jump }),
    }
    if (node.jump !== undefined) return target
    const known = aliases.get(node.host) ?? isAlias(node.host, config.ssh.configFile, env)
    aliases.set(node.host, known)
    if (await known) return target
    const { address } = await addresses.resolve({ host: node.host, fallback: node.fallback }, signal)
    return { ...target, address }
  }
}

/** Asks `ssh -G` whether ssh_config maps the name to another host or a proxy. */
const isAlias = (host: string, configFile: string | undefined, env: NodeJS.ProcessEnv): Promise<boolean> =>
  new Promise(resolve => {
    const args = [...(configFile === undefined ? [] : ['-F', configFile]), '-G', '--', host]
    execFile('ssh', args, { env, timeout: 5000, encoding: 'utf8' }, (error, stdout) => {
      if (error) return resolve(false)
      const value = (key: string): string | undefined => new RegExp(`^${key} (.+)$`, 'm').exec(stdout)?.[1]
      const elsewhere = value('hostname')?.toLowerCase() !== host.toLowerCase()
      const through = [value('proxyjump'), value('proxycommand')].some(
        way => way !== undefined && way !== 'none',
      )
      resolve(elsewhere || through)
    })
  })
