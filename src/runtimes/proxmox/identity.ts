/**
 * A machine is ours when its name, its description, its id, its pool and its tag all say so. Anything that
 * fails one of these is somebody else's, whatever else it looks like.
 */
export interface Identity {
  readonly machineId: string
  readonly owner: string
  readonly createdAt: number
  /** SHA-256 of the machine's token, so that a new daemon knows it again. */
  readonly tokenHash: string
}

export const TAG = 'deputy'

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
  readonly config: Readonly<Record<string, unknown>>
  /** Told only to those who may audit pools. */
  readonly pool?: string | undefined
  readonly status?: string
}

export interface Ownership {
  readonly owner: string
  readonly vmids: { readonly first: number; readonly last: number }
  readonly pool: string
  readonly machineId?: string
}

export const isOurs = (
  { vmid, config, pool, status }: Seen,
  { owner, vmids, pool: ours, machineId }: Ownership,
): boolean => {
  const identity = identityOf(config.description === undefined ? undefined : String(config.description))
  if (identity === undefined || identity.owner !== owner) return false
  if (machineId !== undefined && identity.machineId !== machineId) return false
  if (vmid < vmids.first || vmid > vmids.last) return false
  if (pool !== undefined && pool !== ours) return false
  // A clone gets its tag with its configuration, and is not started before.
  const tags = String(config.tags ?? '').split(/[;, ]+/)
  if (status === 'running' && !tags.includes(ownerTag(owner))) return false
  return config.name === nameOf(identity.machineId)
}

/** The machine that a seed image of this installation was made for. */
export const seedMachine = (volid: string, owner: string): string | undefined => {
  const match = /:iso\/deputy-([a-z0-9]+)-([0-9a-f-]{36})\.iso$/.exec(volid)
  return match?.[1] === owner ? match[2] : undefined
}
