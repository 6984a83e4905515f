import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../row-context.ts'
import { asciiOnly, fromGuest } from './agent-text.ts'
import { item } from './values.ts'

const SHOWN_CHARS = 20_000
/** Fits as base64 into the 61,440 characters of one request. */
const MAX_BYTES = 46_080

export const readFile: Composite = async ({ node, vmid, file }, { call }) => {
  const answer = item(
    await call('GET /nodes/{node}/qemu/{vmid}/agent/file-read', {
      node,
      vmid,
      file: asciiOnly('file', String(file)),
    }),
  )
  const content = fromGuest(answer.content)
  const truncated = content.length > SHOWN_CHARS || answer.truncated === 1 || answer.truncated === true
  return {
    file,
    content: content.slice(0, SHOWN_CHARS),
    bytes: Buffer.byteLength(content),
    ...(truncated && { truncated }),
  }
}

/** Encodes base64 itself: the encoder of Proxmox fails for characters beyond Latin-1 and corrupts those within. */
export const writeFile: Composite = async ({ node, vmid, file, content, encode }, { call }) => {
  const bytes = Buffer.from(String(content), encode === false ? 'base64' : 'utf8')
  if (bytes.length > MAX_BYTES) {
    throw new AppError(
      'too_large',
      `The content has ${bytes.length} bytes; the guest agent takes ${MAX_BYTES} at once.`,
      {
        hint: 'Write parts to several files and join them with proxmox_agent_exec, or let the guest download it.',
      },
    )
  }
  await call('POST /nodes/{node}/qemu/{vmid}/agent/file-write', {
    node,
    vmid,
    file: asciiOnly('file', String(file)),
    content: bytes.toString('base64'),
    encode: false,
  })
  return { ok: true, file, bytes: bytes.length }
}
