import type { CallOptions, Request } from './api-request.ts'

export interface Version {
  readonly version: string
  readonly repoid: string
  readonly major: number
}

export const readVersion = async (request: Request, options: CallOptions = {}): Promise<Version> => {
  const data = await request<Record<string, unknown>>('GET', '/version', {}, options)
  const version = String(data.version ?? '')
  return {
    version,
    repoid: String(data.repoid ?? ''),
    major: Number(version.split('.')[0]),
  }
}
