/** The identity stored in the description of a VM. */
export interface Identity {
  readonly machineId: string
  readonly owner: string
  readonly createdAt: number
  /** SHA-256 of the machine's token, so that a new daemon knows it again. */
  readonly tokenHash: string
}

const TAG = 'deputy'

export const nameOf = (machineId: string): string => `deputy-${machineId}`
export const tagsOf = (owner: string): string => `${TAG};${ownerTag(owner)}`
export const ownerTag = (owner: string): string => `${TAG}-${owner}`
export const seedNameOf = (owner: string, machineId: string): string => `deputy-${owner}-${machineId}.iso`

/** The first line is for people; the second is read back. */
export const describe = ({ machineId, owner, createdAt, tokenHash }: Identity): string =>
  `A machine of Deputy. It is destroyed when its job is over; change nothing here.\n\ndeputy:machine=${machineId};owner=${owner};created=${createdAt};token=${tokenHash}`

export const identityOf = (description: string | undefined): Identity | undefined => {
  const match = /^deputy:machine=([0-9a-f-]{36});owner=([a-z0-9]+);created=(\d+);token=([0-9a-f]{64})$/m.exec(
    description ?? '',
  )
  return match
    ? { machineId: match[1]!, owner: match[2]!, createdAt: Number(match[3]), tokenHash: match[4]! }
    : undefined
}

export interface Seen {
  readonly vmid: number
  readonly pool: string | undefined
  readonly config: Readonly<Record<string, unknown>>
}

export interface Claim {
  readonly owner: string
  readonly pool: string
  readonly vmids: { readonly first: number; readonly last: number }
  /** Absent: any machine of ours. */
  readonly machineId?: string
  /** Whether it was configured already: until then a clone has the tags of its template. */
  readonly tagged?: boolean
}

/**
 * A guest is ours if its description, name, pool, id and tag all match. A guest with our description that fails
 * another check was altered: it is neither touched nor considered gone.
 */
export const ownership = (
  { vmid, pool, config }: Seen,
  { owner, machineId, tagged, ...claim }: Claim,
): 'ours' | 'altered' | 'foreign' => {
  const identity = identityOf(config.description === undefined ? undefined : String(config.description))
  const id = machineId ?? identity?.machineId
  const described = identity !== undefined && identity.owner === owner && identity.machineId === id
  const named = id !== undefined && config.name === nameOf(id)
  const placed = vmid >= claim.vmids.first && vmid <= claim.vmids.last && pool === claim.pool
  const marked = !tagged || tagsIn(config.tags).includes(ownerTag(owner))
  if (described && named && placed && marked) return 'ours'
  return described || (machineId !== undefined && named) ? 'altered' : 'foreign'
}

export const tagsIn = (tags: unknown): string[] =>
  String(tags ?? '')
    .split(/[;, ]+/)
    .filter(tag => tag !== '')

/** The machine that a seed image of this installation was made for. */
export const seedMachine = (volid: string, owner: string): string | undefined => {
  const match = /:iso\/deputy-([a-z0-9]+)-([0-9a-f-]{36})\.iso$/.exec(volid)
  return match?.[1] === owner ? match[2] : undefined
}
