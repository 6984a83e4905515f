import { type Place, privilegeTable } from './privileges.ts'

interface Wanted extends Place {
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
    .flatMap(({ path, privileges }) => {
      const role = roleFor(path)
      return [
        // `role add` fails when the role is there and `role modify` when it is not: one of them does it.
        `pveum role add ${role} --privs "${privileges.join(' ')}" || pveum role modify ${role} --privs "${privileges.join(' ')}"`,
        `pveum acl modify ${quote(path)} --users ${quote(wanted.user)} --roles ${role}`,
        ...(wanted.tokenId === undefined
          ? []
          : [`pveum acl modify ${quote(path)} --tokens ${quote(wanted.tokenId)} --roles ${role}`]),
      ]
    })
}

/** Everything from nothing: pool, user, token, roles and rules. The token's value is printed by the third line. */
export const setupLines = (wanted: Wanted & { tokenName: string }): string[] => [
  `pveum pool add ${quote(wanted.pool)} --comment "machines of Deputy"`,
  `pveum user add ${quote(wanted.user)} --comment "Deputy"`,
  `pveum user token add ${quote(wanted.user)} ${quote(wanted.tokenName)} --privsep 1`,
  ...pveumLines({ ...wanted, tokenId: `${wanted.user}!${wanted.tokenName}` }),
  '# Optional, to place machines by the free memory of nodes and to see whether the firewall of the datacenter is on:',
  ...watchLines(wanted.user, `${wanted.user}!${wanted.tokenName}`).map(line => `# ${line}`),
]

/** What makes placement and doctor see more; nothing that jobs need. */
export const watchLines = (user: string, tokenId?: string): string[] => [
  'pveum role add DeputyWatch --privs "Sys.Audit"',
  ...[
    ['/nodes', ''],
    ['/', ' --propagate 0'],
  ].flatMap(([path, more]) => [
    `pveum acl modify ${path} --users ${quote(user)} --roles DeputyWatch${more}`,
    ...(tokenId === undefined
      ? []
      : [`pveum acl modify ${path} --tokens ${quote(tokenId)} --roles DeputyWatch${more}`]),
  ]),
]

export const roleFor = (path: string): string => {
  if (path.startsWith('/vms/')) return 'DeputyTemplate'
  if (path.startsWith('/pool/')) return 'DeputyJobs'
  if (path.startsWith('/sdn/')) return 'DeputyNetwork'
  // Every character of a storage's name is good in a role's, so no two storages share one.
  return `DeputyStorage-${path.split('/').at(-1)}`
}

/** Single quotes, for `!` means history to an interactive bash even within double ones. */
const quote = (text: string): string =>
  /^[A-Za-z0-9@/._-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
