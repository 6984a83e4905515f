import { AppError } from '../jobs/errors.ts'

const MAX_LENGTH = 512

/**
 * The value of `smbios1` that sends cloud-init to a URL. Setting it replaces everything that was there,
 * so the fields of the present value are kept, above all the uuid.
 */
export const smbiosForSeed = (present: string | undefined, url: string): string => {
  if (!/^https?:\/\/[\x21-\x7e]+\/$/.test(url)) {
    throw new AppError('invalid', `"${url}" cannot be the address of a seed: it must end in a slash.`)
  }
  const { serial: _, base64, ...kept } = parse(present ?? '')
  const fields = Object.entries(kept).map(
    ([key, value]) => `${key}=${key === 'uuid' || base64 === '1' ? value : encode(value)}`,
  )
  // Only `nocloud-net` is understood by every cloud-init in use.
  const value = [...fields, 'base64=1', `serial=${encode(`ds=nocloud-net;s=${url}`)}`].join(',')
  if (value.length <= MAX_LENGTH) return value
  throw new AppError(
    'too_large',
    `The SMBIOS settings would have ${value.length} characters; Proxmox VE takes ${MAX_LENGTH}.`,
    {
      hint: 'Use a shorter callback address, or fewer SMBIOS fields on the template.',
    },
  )
}

const encode = (text: string): string => Buffer.from(text).toString('base64')

const parse = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split(',')
      .filter(part => part.includes('='))
      .map(part => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]),
  )
