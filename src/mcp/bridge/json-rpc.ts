export type Id = string | number

/** The fields of a JSON-RPC message that the bridge reads. */
export interface Message {
  readonly id?: Id
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: unknown
}

export const parseMessage = (line: Buffer): Message | undefined => {
  try {
    const value: unknown = JSON.parse(line.toString())
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const isRequest = (message: Message): message is Message & { id: Id; method: string } =>
  message.method !== undefined && message.id !== undefined && message.id !== null

export const isResponse = (message: Message): message is Message & { id: Id } =>
  message.method === undefined && message.id !== undefined && message.id !== null

export const errorResponse = (id: Id | null, code: number, message: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })

export const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((inner, key) => (isRecord(inner) ? inner[key] : undefined), value)

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
