import { at, errorAnswer, type Id, isAnswer, isRequest, type Message } from './json-rpc.ts'

/**
 * What the bridge must know of a conversation to carry it over to another daemon: which requests wait for their
 * answer, how it was opened, and what the client listens to.
 */
export interface Conversation {
  /** Notes a line of the client that goes to a daemon. */
  sent(message: Message, line: string): void
  /** Notes a line of the daemon. False: the client must not see it. */
  received(message: Message): boolean
  /** Requests without an answer, subscriptions not counted: those have none. */
  waiting(): number
  /** The daemon is gone: what to tell the client about the requests it had. */
  lost(): string[]
  /** There will be no daemon for now: every request gets this answer. */
  giveUp(reason: string): string[]
  /** What a new daemon has to hear before anything else, and what the client has to hear after that. */
  resume(): { toDaemon: string[]; toClient: string[] }
}

interface Sent {
  readonly message: Message
  readonly line: string
}

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
/** Opening a conversation changes nothing: such a request is simply asked again. */
const OPENING = new Set(['initialize', 'server/discover'])

export const createConversation = (): Conversation => {
  const inFlight = new Map<Id, Sent>()
  const listens = new Map<Id, Sent>()
  const subscribed = new Map<string, Sent>()
  const opened: { initialize?: Sent; initialized?: Sent } = {}
  const ours = new Set<Id>()
  const ackedBefore = new Set<Id>()
  let count = 0

  /** The same request under an id of ours, so that its answer stays with us. */
  const repeat = ({ message }: Sent): string => {
    const id = `deputy-bridge-${process.pid}-${++count}`
    ours.add(id)
    return JSON.stringify({ ...message, id })
  }

  const answered = (id: Id, message: Message) => {
    const request = inFlight.get(id)?.message
    inFlight.delete(id)
    listens.delete(id)
    if (request === undefined || message.error !== undefined) return
    const uri = String(at(request.params, 'uri'))
    if (request.method === 'resources/subscribe') subscribed.set(uri, { message: request, line: '' })
    if (request.method === 'resources/unsubscribe') subscribed.delete(uri)
  }

  return {
    sent: (message, line) => {
      if (isRequest(message)) {
        if (message.method === 'subscriptions/listen') listens.set(message.id, { message, line })
        else inFlight.set(message.id, { message, line })
        if (message.method === 'initialize') opened.initialize = { message, line }
      } else if (message.method === 'notifications/initialized') opened.initialized = { message, line }
      else if (message.method === 'notifications/cancelled') {
        const id = at(message.params, 'requestId') as Id
        inFlight.delete(id)
        listens.delete(id)
      }
    },

    received: message => {
      if (isAnswer(message)) {
        if (ours.delete(message.id)) return false
        answered(message.id, message)
      }
      if (message.method !== 'notifications/subscriptions/acknowledged') return true
      return !ackedBefore.delete(at(message.params, '_meta', SUBSCRIPTION_ID) as Id)
    },

    waiting: () => inFlight.size,

    lost: () => {
      const lines: string[] = []
      for (const [id, { message }] of inFlight) {
        if (OPENING.has(message.method ?? '')) continue
        lines.push(errorAnswer(id, -32603, apology(message)))
        inFlight.delete(id)
      }
      ours.clear()
      ackedBefore.clear()
      return lines
    },

    giveUp: reason => {
      const lines = [...inFlight.keys(), ...listens.keys()].map(id => errorAnswer(id, -32603, reason))
      // A client that was refused opens the conversation again itself.
      if (inFlight.has(opened.initialize?.message.id ?? '')) delete opened.initialize
      inFlight.clear()
      listens.clear()
      return lines
    },

    resume: () => {
      const unanswered = [...inFlight.values()].map(sent => sent.line)
      const { initialize, initialized } = opened
      const toDaemon: string[] = []
      // An answered `initialize` is repeated behind the client's back; an unanswered one goes out as it came.
      if (initialize && !inFlight.has(initialize.message.id ?? '')) toDaemon.push(repeat(initialize))
      toDaemon.push(...unanswered)
      if (initialize && initialized) toDaemon.push(initialized.line)
      for (const sent of subscribed.values()) toDaemon.push(repeat(sent))
      for (const [id, { line }] of listens) {
        toDaemon.push(line)
        ackedBefore.add(id)
      }
      return { toDaemon, toClient: missed(subscribed.keys(), listens) }
    },
  }
}

/** Nobody can say what changed while no daemon ran, so everything listened to counts as changed. */
const missed = (subscribed: Iterable<string>, listens: ReadonlyMap<Id, Sent>): string[] => {
  const lines = [...subscribed].map(uri => notification('notifications/resources/updated', { uri }))
  for (const [id, { message }] of listens) {
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

const apology = ({ method, params }: Message): string => {
  const gone = 'The Deputy daemon went away while it worked on this request; jobs survive that.'
  return method === 'tools/call' && at(params, 'name') === 'submit_job'
    ? `${gone} Whether it took the job is not known: look with list_jobs, or submit again with the same idempotency_key.`
    : `${gone} Call again.`
}
