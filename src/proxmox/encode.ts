import { AppError } from '../jobs/errors.ts'

export type Scalar = string | number | boolean
export type Params = Readonly<Record<string, Scalar | readonly Scalar[] | null | undefined>>

/** pveproxy's own limit; a bigger body is answered with 501 after it was sent. */
export const MAX_BODY_BYTES = 512 * 1024

/**
 * A path whose values are encoded one by one, so that none can add a segment:
 * ``path`/nodes/${node}/tasks/${upid}` ``.
 */
export const path = (strings: TemplateStringsArray, ...values: (string | number)[]): string =>
  strings.reduce((text, part, index) => text + segment(values[index - 1]!) + part)

/** Fills `{name}` placeholders of a catalogue path and returns the parameters that are left. */
export const fillPath = (template: string, params: Params): { path: string; rest: Params } => {
  const rest: Record<string, Params[string]> = { ...params }
  const filled = template.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const value = rest[name]
    if (value === undefined || value === null || Array.isArray(value)) {
      throw new AppError('invalid', `${template} needs a value for "${name}".`, {
        hint: `Pass ${name} with the parameters.`,
      })
    }
    delete rest[name]
    return segment(value as string | number)
  })
  return { path: filled, rest }
}

/** Booleans become 1 and 0, arrays repeat their key: the only forms that Proxmox VE takes. */
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
      hint: 'Send big content as an upload to a storage, or in parts.',
    },
  )
}

/** Of the spellings of true and false Proxmox VE takes these alone. */
export const encodeScalar = (value: Scalar): string =>
  typeof value === 'boolean' ? (value ? '1' : '0') : String(value)

const segment = (value: string | number): string => {
  const text = String(value)
  // Encoded dots would still be resolved as path steps by every URL parser on the way.
  if (text === '' || text === '.' || text === '..') {
    throw new AppError('invalid', `"${text}" cannot be part of a Proxmox VE path.`, {
      hint: 'Pass the name of a node, storage, guest or task.',
    })
  }
  return encodeURIComponent(text)
}
