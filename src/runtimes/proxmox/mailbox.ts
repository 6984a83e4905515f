import type { Clock } from '../../proxmox/clock.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import type { Logger } from '../../proxmox/logger.ts'
import type { AgentLink } from './agent.ts'

export interface MailboxOptions {
  readonly agent: AgentLink
  readonly clock: Clock
  readonly log: Logger
  /** Our own guest listener, over loopback. */
  readonly port: number
  /** Ends when the machine is not wanted any more. */
  readonly signal: AbortSignal
}

const BOX = '$DEPUTY_ROOT/run/deputy/box'
const SLICE = 1024 * 1024
/** Between two looks at an empty box. */
const IDLE_MS = 700
const TROUBLE_MS = 3000

/**
 * Carries the requests of a machine without a network to the guest listener, and the answers back, through the
 * guest agent. Every step can be repeated: the protocol recognises what it has seen.
 */
export const serveMailbox = async ({ agent, clock, log, port, signal }: MailboxOptions): Promise<void> => {
  while (!signal.aborted) {
    try {
      const request = await fetchRequest(agent, signal)
      if (request === undefined) await clock.sleep(IDLE_MS, signal)
      else await answer(agent, await forward(port, request, signal), signal)
    } catch (error) {
      if (signal.aborted) return
      log.debug(
        { reason: (error as Error).message, kind: proxmoxDetails(error)?.kind },
        'a mailbox could not be served',
      )
      await clock.sleep(TROUBLE_MS, signal).catch(() => {})
    }
  }
}

const SHOW = `cd "${BOX}" 2>/dev/null && [ -e request ] && [ ! -e answer ] || exit 3; wc -c <request; tail -c "+$1" request | head -c ${SLICE} | base64`

/** The oldest request that has no answer, in slices that the agent can carry. */
const fetchRequest = async (agent: AgentLink, signal: AbortSignal): Promise<Buffer | undefined> => {
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
    if (have >= size || slice.length === 0) return Buffer.concat(slices)
  }
}

interface Reply {
  readonly status: number
  readonly body: Buffer
}

const forward = async (port: number, request: Buffer, signal: AbortSignal): Promise<Reply> => {
  const end = request.indexOf(10)
  const [method = '', path = '', token = ''] = request.subarray(0, end).toString('latin1').split(' ')
  if (!/^(GET|POST|PUT)$/.test(method) || !/^[A-Za-z0-9/_?=&.%-]+$/.test(path))
    return { status: 400, body: Buffer.alloc(0) }
  const body = request.subarray(end + 1)
  const answer = await fetch(`http://127.0.0.1:${port}/guest/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
    ...(method === 'GET' ? {} : { body: new Uint8Array(body) }),
    signal,
  })
  return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) }
}

const answer = async (agent: AgentLink, { status, body }: Reply, signal: AbortSignal): Promise<void> => {
  await agent.writeFile(
    '/run/deputy/box/answer.new',
    Buffer.concat([Buffer.from(`${status}\n`), body]),
    signal,
  )
  await agent.exec(['/bin/sh', '-c', `cd "${BOX}" && rm -f request && mv answer.new answer`], signal)
}
