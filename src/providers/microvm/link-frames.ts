import { AppError } from '../../jobs/errors.ts'

/** The frames between the daemon and the agent of a VM; `program/agent.pl` describes them. */
export type SentKind = 'S' | 'n' | 'N' | 'd' | 'e' | 'a' | 'k' | 'c'

export interface Frame {
  readonly kind: string
  readonly id: number
  readonly value: number
  readonly data: Buffer
}

const HEADER = 9
/** The most data of one frame. */
export const MAX_DATA = 65_536
/** Bytes that one side may send to a program before the other has taken them; as in `agent.pl`. */
export const WINDOW = 262_144

/** Completes whatever frame an earlier connection has left incomplete. Between frames, the agent skips it. */
export const NOTHING: Buffer = Buffer.alloc(HEADER + MAX_DATA)

/** The value is the data, or a number of bytes. */
export const encodeFrame = (kind: SentKind, id: number, value: Buffer | number = 0): Buffer => {
  const header = Buffer.alloc(HEADER, kind)
  header.writeUInt32BE(id, 1)
  header.writeUInt32BE(typeof value === 'number' ? value : value.length, 5)
  return typeof value === 'number' ? header : Buffer.concat([header, value])
}

const WITH_DATA = new Set(['d', 's'])
const WITHOUT_DATA = new Set(['a', 'x', 'c'])

/** Throws for what an agent never sends: a job that takes over the VM can send anything. */
export const createFrameReader = (onFrame: (frame: Frame) => void): ((chunk: Buffer) => void) => {
  let held: Buffer = Buffer.alloc(0)
  return chunk => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    while (held.length >= HEADER) {
      const kind = String.fromCharCode(held[0] ?? 0)
      const value = held.readUInt32BE(5)
      const length = WITH_DATA.has(kind) ? value : 0
      if (length > MAX_DATA || (length === 0 && !WITHOUT_DATA.has(kind)))
        throw new AppError('unavailable', 'The VM sent something that cannot be read.')
      if (held.length < HEADER + length) return
      const frame = { kind, id: held.readUInt32BE(1), value, data: held.subarray(HEADER, HEADER + length) }
      held = held.subarray(HEADER + length)
      onFrame(frame)
    }
  }
}
