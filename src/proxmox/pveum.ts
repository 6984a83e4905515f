import { type PrivilegeScope, privilegeTable } from './privileges.ts'

interface Wanted extends PrivilegeScope {
  readonly user: string
  readonly tokenId?: string
  /** Only these paths get lines; without it all do. */
  readonly missing?: readonly { readonly path: string }[]
}

/**
 * The lines an administrator types on a node. With privilege separation the effective rights are those
 * that user and token share, so every rule is given to both.
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

/** Makes the role, or adds to it, and gives it to user and token on a path. */
export const grantLines = ({ user, tokenId, path, role, privileges }: Grant): string[] => [
  roleLine(role, privileges),
  // root@pam may do everything, and takes no rule.
  ...(user === 'root@pam' ? [] : [`pveum acl modify ${quote(path)} --users ${quote(user)} --roles ${role}`]),
  ...(tokenId === undefined
    ? []
    : [`pveum acl modify ${quote(path)} --tokens ${quote(tokenId)} --roles ${role}`]),
]

/** Everything from nothing: pool, user, token, roles and rules. The token's value is printed by the third line. */
export const setupLines = (wanted: Wanted & { tokenName: string }): string[] => [
  `pveum pool add ${quote(wanted.pool)} --comment "machines of Deputy"`,
  `pveum user add ${quote(wanted.user)} --comment "Deputy"`,
  `pveum user token add ${quote(wanted.user)} ${quote(wanted.tokenName)} --privsep 1`,
  ...pveumLines({ ...wanted, tokenId: `${wanted.user}!${wanted.tokenName}` }),
  '# Optional, to place machines by the free memory of nodes and to see whether the firewall of the datacenter is on:',
  ...auditGrantLines({ user: wanted.user, tokenId: `${wanted.user}!${wanted.tokenName}` }).map(
    line => `# ${line}`,
  ),
]

/** What lets placement see the load of nodes, and doctor the firewall of the datacenter; jobs need none of it. */
export const auditGrantLines = (
  { user, tokenId }: Pick<Wanted, 'user' | 'tokenId'>,
  paths: readonly ('/nodes' | '/')[] = ['/nodes', '/'],
): string[] => [
  roleLine('DeputyWatch', ['Sys.Audit']),
  ...paths.flatMap(path => {
    const rule = `--roles DeputyWatch${path === '/' ? ' --propagate 0' : ''}`
    return [
      `pveum acl modify ${path} --users ${quote(user)} ${rule}`,
      ...(tokenId === undefined ? [] : [`pveum acl modify ${path} --tokens ${quote(tokenId)} ${rule}`]),
    ]
  }),
]

/** `role add` fails when the role is there and `role modify` when it is not: one of them does it, and takes nothing away. */
const roleLine = (role: string, privileges: readonly string[]): string => {
  const rest = `${role} --privs "${privileges.join(' ')}"`
  return `pveum role add ${rest} || pveum role modify ${rest} --append 1`
}

/** Single quotes, for `!` means history to an interactive bash even within double ones. */
const quote = (text: string): string =>
  /^[A-Za-z0-9@/._-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
