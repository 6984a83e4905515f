import { isIPv4 } from 'node:net'

/** The few shapes of ASN.1 DER that a certificate is made of. */
export const sequence = (...parts: Buffer[]): Buffer => tlv(0x30, Buffer.concat(parts))
export const set = (...parts: Buffer[]): Buffer => tlv(0x31, Buffer.concat(parts))
export const tagged = (tag: number, content: Buffer): Buffer => tlv(0xa0 | tag, content)
export const integer = (bytes: Buffer): Buffer => tlv(0x02, bytes)
export const bool = (value: boolean): Buffer => tlv(0x01, Buffer.from([value ? 0xff : 0]))
export const octets = (bytes: Buffer): Buffer => tlv(0x04, bytes)
export const bits = (bytes: Buffer): Buffer => tlv(0x03, Buffer.concat([Buffer.from([0]), bytes]))
export const utf8 = (text: string): Buffer => tlv(0x0c, Buffer.from(text))

/** Tag, length, content. */
export const tlv = (tag: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([tag]), length(content.length), content])

export const oid = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return tlv(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

/** Two-digit years end in 2049; later dates need the longer form. */
export const utcTime = (date: Date): Buffer => {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(0, 14)
  return date.getUTCFullYear() < 2050
    ? tlv(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : tlv(0x18, Buffer.from(`${digits}Z`))
}

export const ipBytes = (address: string): Buffer => {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const words = (text: string) => text.split(':').filter(word => word !== '')
  const front = words(head)
  const back = tail === undefined ? [] : words(tail)
  const middle = Array<string>(8 - front.length - back.length).fill('0')
  return Buffer.from([...front, ...middle, ...back].map(word => word.padStart(4, '0')).join(''), 'hex')
}

const length = (size: number): Buffer => {
  if (size < 0x80) return Buffer.from([size])
  const bytes: number[] = []
  for (let rest = size; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

const base128 = (value: number): number[] => {
  const bytes = [value & 0x7f]
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}
