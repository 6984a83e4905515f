import { AppError } from '../jobs/errors.ts'

export interface Upid {
  readonly upid: string
  readonly node: string
  readonly type: string
  /** The guest, storage or other object of the task; for a clone the source, not the new guest. */
  readonly id: string
  readonly user: string
}

const UPID =
  /^UPID:([A-Za-z0-9][A-Za-z0-9-]*):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s]+):([^:\s]*):([^:\s]+):$/

export const parseUpid = (text: string): Upid => {
  const match = UPID.exec(text)
  if (!match) {
    throw new AppError('invalid', `Invalid Proxmox VE task id "${text}".`, {
      hint: 'A task id looks like UPID:pve1:0000A1B2:00C3D4E5:66F7A8B9:qmclone:9000:user@pve!token:',
    })
  }
  return {
    upid: text,
    node: match[1]!,
    type: match[5]!,
    id: match[6]!,
    user: match[7]!.split('!')[0]!,
  }
}

export const isUpid = (value: unknown): value is string => typeof value === 'string' && UPID.test(value)
