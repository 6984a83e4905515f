import { AppError } from '../jobs/errors.ts'

export type Scalar = string | number | boolean
export type Params = Readonly<Record<string, Scalar | readonly Scalar[] | null | undefined>>

/** Limit of pveproxy. It answers a larger body with 501, after receiving all of it. */
export const MAX_BODY_BYTES = 512 * 1024

/**
 * Builds a path and encodes each value, so that none can add a segment: ``path`/nodes/${node}/tasks/${upid}` ``.
 */
export const path = (strings: TemplateStringsArray, ...values: (string | number)[]): string =>
  strings.reduce((text, part, index) => text + segment(values[index - 1]!) + part)

/** Encodes booleans as 1 and 0 and repeats the key of arrays: the only forms that Proxmox VE accepts. */
export const encodeParams = (params: Params): string => {
  const form = new URLSearchParams()
  for (const [key, value] of Object.entries(params)) {
    if (value === undefined || value === null) continue
    for (const one of Array.isArray(value) ? value : [value]) form.append(key, encodeScalar(one as Scalar))
  }
  return form.toString()
}

export const encodeBody = (params: Params): string => {
  const body = encodeParams(params)
  if (body.length <= MAX_BODY_BYTES) return body
  throw new AppError(
    'too_large',
    `The request has ${body.length} bytes; Proxmox VE takes at most ${MAX_BODY_BYTES}.`,
    {
      hint: 'Upload large content to a storage, or send it in parts.',
    },
  )
}

/** Proxmox VE accepts only 1 and 0 as booleans. */
export const encodeScalar = (value: Scalar): string =>
  typeof value === 'boolean' ? (value ? '1' : '0') : String(value)

const segment = (value: string | number): string => {
  const text = String(value)
  // URL parsers resolve dot segments even when they are encoded.
  if (text === '' || text === '.' || text === '..') {
    throw new AppError('invalid', `"${text}" cannot be part of a Proxmox VE path.`, {
      hint: 'Pass the name of a node, storage, guest or task.',
    })
  }
  return encodeURIComponent(text)
}
