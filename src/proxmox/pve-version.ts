import type { CallOptions, Request } from './api-request.ts'

export interface Version {
  readonly version: string
  readonly release: string
  readonly repoid: string
  readonly major: number
  readonly minor: number
}

export const readVersion = async (request: Request, options: CallOptions = {}): Promise<Version> => {
  const data = await request<Record<string, unknown>>('GET', '/version', {}, options)
  const version = String(data.version ?? '')
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return {
    version,
    release: String(data.release ?? ''),
    repoid: String(data.repoid ?? ''),
    major,
    minor,
  }
}
