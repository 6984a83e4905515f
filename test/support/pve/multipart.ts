import { PveError } from './errors.ts'

export interface Parts {
  readonly fields: Record<string, string>
  readonly file: Buffer | undefined
}

/** As strict as the real parser: fields count only before the file, and part headers must start exactly so. */
export const parseMultipart = (contentType: string, body: Buffer): Parts => {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/.exec(contentType)
  const marker = `--${boundary?.[1] ?? boundary?.[2] ?? ''}`
  if (marker === '--') throw new PveError(400, 'unable to parse multipart boundary')
  const fields: Record<string, string> = {}
  let file: Buffer | undefined
  let at = body.indexOf(marker)
  while (at >= 0 && file === undefined) {
    const start = at + marker.length + 2
    const next = body.indexOf(`\r\n${marker}`, start - 2)
    if (next < 0) break
    const headerEnd = body.indexOf('\r\n\r\n', start)
    if (headerEnd < 0 || headerEnd > next) break
    const header = body.subarray(start, headerEnd).toString('latin1')
    const content = body.subarray(headerEnd + 4, next)
    const upload = /^Content-Disposition: form-data; name="filename"; filename="([^"]+)"/.exec(header)
    const field = /^Content-Disposition: form-data; name="([^"]+)"/.exec(header)
    if (upload) {
      fields.filename = upload[1]!
      file = Buffer.from(content)
    } else if (field) fields[field[1]!] = content.toString('utf8')
    else throw new PveError(400, 'unable to parse multipart header')
    at = next + 2
  }
  return { fields, file }
}
