import { quoteIfNeeded } from '../runner/shell-words.ts'
import { type PrivilegeScope, privilegeTable } from './privileges.ts'

interface Wanted extends PrivilegeScope {
  readonly user: string
  readonly tokenId?: string
  /** Limits the commands to these paths. Default: all paths. */
  readonly missing?: readonly { readonly path: string }[]
}

/**
 * The commands for an administrator on a node. With privilege separation, a token has only the privileges that its user
 * has too, so every rule is given to both.
 */
export const pveumLines = (wanted: Wanted): string[] => {
  const paths = wanted.missing && new Set(wanted.missing.map(one => one.path))
  return privilegeTable(wanted)
    .filter(({ path }) => paths?.has(path) ?? true)
    .flatMap(needed => grantLines({ ...wanted, ...needed }))
}

interface Grant {
  readonly user: string
  readonly tokenId?: string
  readonly path: string
  readonly role: string
  readonly privileges: readonly string[]
}

/** Creates or extends the role, and grants it to user and token on the path. */
export const grantLines = ({ user, tokenId, path, role, privileges }: Grant): string[] => [
  roleLine(role, privileges),
  // root@pam has all privileges and accepts no ACL entry.
  ...(user === 'root@pam'
    ? []
    : [`pveum acl modify ${quoteIfNeeded(path)} --users ${quoteIfNeeded(user)} --roles ${role}`]),
  ...(tokenId === undefined
    ? []
    : [`pveum acl modify ${quoteIfNeeded(path)} --tokens ${quoteIfNeeded(tokenId)} --roles ${role}`]),
]

/** The commands for a new installation: pool, user, token, roles and rules. The third prints the value of the token. */
export const setupLines = (wanted: Wanted & { tokenName: string }): string[] => [
  `pveum pool add ${quoteIfNeeded(wanted.pool)} --comment "machines of Deputy"`,
  `pveum user add ${quoteIfNeeded(wanted.user)} --comment "Deputy"`,
  `pveum user token add ${quoteIfNeeded(wanted.user)} ${quoteIfNeeded(wanted.tokenName)} --privsep 1`,
  ...pveumLines({ ...wanted, tokenId: `${wanted.user}!${wanted.tokenName}` }),
  '# Optional, to place machines by the free memory of nodes and to see whether the firewall of the datacenter is on:',
  ...auditGrantLines({ user: wanted.user, tokenId: `${wanted.user}!${wanted.tokenName}` }).map(
    line => `# ${line}`,
  ),
]

/** Optional grants: placement can read the load of nodes, and doctor the datacenter firewall. Jobs do not need them. */
export const auditGrantLines = (
  { user, tokenId }: Pick<Wanted, 'user' | 'tokenId'>,
  paths: readonly ('/nodes' | '/')[] = ['/nodes', '/'],
): string[] => [
  roleLine('DeputyWatch', ['Sys.Audit']),
  ...paths.flatMap(path => {
    const rule = `--roles DeputyWatch${path === '/' ? ' --propagate 0' : ''}`
    return [
      `pveum acl modify ${path} --users ${quoteIfNeeded(user)} ${rule}`,
      ...(tokenId === undefined
        ? []
        : [`pveum acl modify ${path} --tokens ${quoteIfNeeded(tokenId)} ${rule}`]),
    ]
  }),
]

/** `role add` fails if the role exists, `role modify` if it does not. The role never loses privileges. */
const roleLine = (role: string, privileges: readonly string[]): string => {
  const rest = `${role} --privs "${privileges.join(' ')}"`
  return `pveum role add ${rest} || pveum role modify ${rest} --append 1`
}
