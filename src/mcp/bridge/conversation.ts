import { at, errorResponse, type Id, isRequest, isResponse, type Message } from './json-rpc.ts'

/**
 * The state that the bridge needs to continue a session on another daemon: requests without a response, the handshake,
 * and the subscriptions of the client.
 */
export interface Conversation {
  /** Records a message from the client to the daemon. */
  sent(message: Message, line: string): void
  /** Records a message from the daemon. Returns false if it must not be passed to the client. */
  received(message: Message): boolean
  /** Number of requests without a response, except subscriptions, which get none. */
  pendingCount(): number
  /** The daemon disconnected: returns error responses for the requests that it had, except the handshake. */
  failInFlight(): string[]
  /** No daemon can be reached: returns an error response for every request. */
  failAll(reason: string): string[]
  /** Returns the messages that restore the session on a new daemon, and then the notifications for the client. */
  resume(): { toDaemon: string[]; toClient: string[] }
}

interface SentRequest {
  readonly message: Message
  readonly line: string
}

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
/** These requests have no side effects, so they are sent again to the next daemon. */
const HANDSHAKE_METHODS = new Set(['initialize', 'server/discover'])

export const createConversation = (): Conversation => {
  const inFlight = new Map<Id, SentRequest>()
  const listeners = new Map<Id, SentRequest>()
  const subscribed = new Map<string, SentRequest>()
  const handshake: { initialize?: SentRequest; initialized?: SentRequest } = {}
  const bridgeIds = new Set<Id>()
  const alreadyAcknowledged = new Set<Id>()
  let count = 0

  /** Sends the request again under an id of the bridge, so that its response is not passed to the client. */
  const repeatAsBridge = ({ message }: SentRequest): string => {
    const id = `deputy-bridge-${process.pid}-${++count}`
    bridgeIds.add(id)
    return JSON.stringify({ ...message, id })
  }

  const recordResponse = (id: Id, message: Message) => {
    const request = inFlight.get(id)?.message
    inFlight.delete(id)
    listeners.delete(id)
    if (request === undefined || message.error !== undefined) return
    const uri = String(at(request.params, 'uri'))
    if (request.method === 'resources/subscribe') subscribed.set(uri, { message: request, line: '' })
    if (request.method === 'resources/unsubscribe') subscribed.delete(uri)
  }

  return {
    sent: (message, line) => {
      if (isRequest(message)) {
        if (message.method === 'subscriptions/listen') listeners.set(message.id, { message, line })
        else inFlight.set(message.id, { message, line })
        if (message.method === 'initialize') handshake.initialize = { message, line }
      } else if (message.method === 'notifications/initialized') handshake.initialized = { message, line }
      else if (message.method === 'notifications/cancelled') {
        const id = at(message.params, 'requestId') as Id
        inFlight.delete(id)
        listeners.delete(id)
      }
    },

    received: message => {
      if (isResponse(message)) {
        if (bridgeIds.delete(message.id)) return false
        recordResponse(message.id, message)
      }
      if (message.method !== 'notifications/subscriptions/acknowledged') return true
      return !alreadyAcknowledged.delete(at(message.params, '_meta', SUBSCRIPTION_ID) as Id)
    },

    pendingCount: () => inFlight.size,

    failInFlight: () => {
      const lines: string[] = []
      for (const [id, { message }] of inFlight) {
        if (HANDSHAKE_METHODS.has(message.method ?? '')) continue
        lines.push(errorResponse(id, -32603, lostRequestMessage(message)))
        inFlight.delete(id)
      }
      bridgeIds.clear()
      alreadyAcknowledged.clear()
      return lines
    },

    failAll: reason => {
      const lines = [...inFlight.keys(), ...listeners.keys()].map(id => errorResponse(id, -32603, reason))
      // The client gets an error for its `initialize` and must send it again itself.
      if (inFlight.has(handshake.initialize?.message.id ?? '')) delete handshake.initialize
      inFlight.clear()
      listeners.clear()
      return lines
    },

    resume: () => {
      const unanswered = [...inFlight.values()].map(sent => sent.line)
      const { initialize, initialized } = handshake
      const toDaemon: string[] = []
      // The client has the response to its `initialize` already, so the bridge repeats the request under its own id.
      if (initialize && !inFlight.has(initialize.message.id ?? '')) toDaemon.push(repeatAsBridge(initialize))
      toDaemon.push(...unanswered)
      if (initialize && initialized) toDaemon.push(initialized.line)
      for (const sent of subscribed.values()) toDaemon.push(repeatAsBridge(sent))
      for (const [id, { line }] of listeners) {
        toDaemon.push(line)
        alreadyAcknowledged.add(id)
      }
      return { toDaemon, toClient: changeNotifications(subscribed.keys(), listeners) }
    },
  }
}

/** Changes during the outage are unknown, so report every subscribed resource as changed. */
const changeNotifications = (
  subscribed: Iterable<string>,
  listeners: ReadonlyMap<Id, SentRequest>,
): string[] => {
  const lines = [...subscribed].map(uri => notification('notifications/resources/updated', { uri }))
  for (const [id, { message }] of listeners) {
    const _meta = { [SUBSCRIPTION_ID]: id }
    const filter = at(message.params, 'notifications')
    const uris = at(filter, 'resourceSubscriptions')
    for (const uri of Array.isArray(uris) ? uris : [])
      lines.push(notification('notifications/resources/updated', { uri, _meta }))
    if (at(filter, 'resourcesListChanged') === true)
      lines.push(notification('notifications/resources/list_changed', { _meta }))
  }
  return lines
}

const notification = (method: string, params: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params })

const lostRequestMessage = ({ method, params }: Message): string => {
  const lost = 'The Deputy daemon stopped during this request; jobs keep running.'
  return method === 'tools/call' && at(params, 'name') === 'submit_job'
    ? `${lost} It is not known whether the job was accepted: check list_jobs, or submit again with the same idempotency_key.`
    : `${lost} Call again.`
}
