import { AppError } from '../../jobs/errors.ts'
import type { Logger } from '../../proxmox/logger.ts'
import type { Clock } from '../../proxmox/proxmox-clock.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { AgentLink } from './guest-agent.ts'

export interface AgentTransportOptions {
  readonly agent: AgentLink
  readonly clock: Clock
  readonly log: Logger
  /** Our own guest listener, over loopback. */
  readonly port: number
  /** Ends when the machine is not wanted any more. */
  readonly signal: AbortSignal
}

const BOX = '/run/deputy/box'
const SLICE = 1024 * 1024
/** Maximum request size, to bound memory. The runner never exceeds it; larger requests get 413 without being read. */
const LARGEST = 64 * 1024 * 1024
/** Poll interval while there is no request. */
const IDLE_MS = 700
const TROUBLE_MS = 3000

/**
 * Forwards the requests of a machine without a network to the guest listener, and the answers back, through the
 * guest agent. Every step can be repeated: the protocol is idempotent.
 */
export const serveAgentTransport = async ({
  agent,
  clock,
  log,
  port,
  signal,
}: AgentTransportOptions): Promise<void> => {
  while (!signal.aborted) {
    try {
      const request = await fetchRequest(agent, signal)
      if (request === undefined) await clock.sleep(IDLE_MS, signal)
      else await answer(agent, request, await replyTo(port, request, signal), signal)
    } catch (error) {
      if (signal.aborted) return
      log.debug(
        { reason: (error as Error).message, kind: proxmoxDetails(error)?.kind },
        'a request through the guest agent failed',
      )
      await clock.sleep(TROUBLE_MS, signal).catch(() => {})
    }
  }
}

const SHOW = `cd "${BOX}" 2>/dev/null && [ -e request ] && [ ! -e answer ] || exit 3; wc -c <request; tail -c "+$1" request | head -c ${SLICE} | base64`

interface GuestRequest {
  /** The first line: method, path, token and the id of the request. */
  readonly head: readonly string[]
  /** Undefined if the body exceeds the limit. */
  readonly body: Buffer | undefined
}

/** The oldest request that has no answer, in slices that the agent can carry. */
const fetchRequest = async (agent: AgentLink, signal: AbortSignal): Promise<GuestRequest | undefined> => {
  const slices: Buffer[] = []
  for (let have = 0; ; ) {
    const { code, out } = await agent.exec(['/bin/sh', '-c', SHOW, 'sh', String(have + 1)], signal)
    if (code !== 0) return undefined
    const text = out.toString('latin1')
    const end = text.indexOf('\n')
    const size = Number(text.slice(0, end).trim())
    const slice = Buffer.from(text.slice(end + 1), 'base64')
    slices.push(slice)
    have += slice.length
    const isWhole = have >= size || slice.length === 0
    if (isWhole || size > LARGEST || have > LARGEST) return open(Buffer.concat(slices), isWhole)
  }
}

const open = (message: Buffer, isWhole: boolean): GuestRequest => {
  const end = message.indexOf(10)
  const head = message.subarray(0, end).toString('latin1').split(' ')
  return { head, body: isWhole ? message.subarray(end + 1) : undefined }
}

interface Reply {
  readonly status: number
  readonly body: Buffer
}

const replyTo = async (port: number, { head, body }: GuestRequest, signal: AbortSignal): Promise<Reply> => {
  const [method = '', path = '', token = ''] = head
  if (!/^(GET|POST|PUT)$/.test(method) || !/^[A-Za-z0-9/_?=&.%-]+$/.test(path))
    return { status: 400, body: Buffer.alloc(0) }
  if (body === undefined) return { status: 413, body: Buffer.alloc(0) }
  const answer = await fetch(`http://127.0.0.1:${port}/guest/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
    ...(method === 'GET' ? {} : { body: new Uint8Array(body) }),
    signal,
  })
  return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) }
}

/** Writes the answer only if its request is still there: the machine may have given up and written another. */
const DELIVER = `cd "${BOX}" && read -r _ _ _ name _ <request && [ "$name" = "$1" ] && rm -f request && mv answer.new answer`

const answer = async (
  agent: AgentLink,
  { head }: GuestRequest,
  { status, body }: Reply,
  signal: AbortSignal,
): Promise<void> => {
  const name = head[3] ?? ''
  if (!/^[0-9.]{1,40}$/.test(name)) throw new AppError('invalid', 'A request of a machine has no valid id.')
  await agent.writeFile(
    '/run/deputy/box/answer.new',
    Buffer.concat([Buffer.from(`${status} ${name}\n`), body]),
    signal,
  )
  await agent.exec(['/bin/sh', '-c', DELIVER, 'sh', name], signal)
}
