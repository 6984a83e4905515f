import { describe, expect, it } from 'vitest'
import { createConversation } from '../../../src/mcp/bridge/conversation.ts'
import { type Message, parseMessage } from '../../../src/mcp/bridge/json-rpc.ts'

const open = () => {
  const conversation = createConversation()
  return {
    ...conversation,
    say: (message: Message) => conversation.sent(message, JSON.stringify(message)),
    resumed: () => {
      const { toDaemon, toClient } = conversation.resume()
      return {
        toDaemon: toDaemon.map(line => JSON.parse(line)),
        toClient: toClient.map(line => JSON.parse(line)),
      }
    },
    lostIds: () => conversation.failInFlight().map(line => JSON.parse(line)),
  }
}

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

describe('a conversation that loses its daemon', () => {
  it('tells the client to repeat what was not answered', () => {
    const talk = open()
    talk.say({ id: 1, method: 'tools/list' })
    talk.say({ id: 'a', method: 'tools/call', params: { name: 'list_jobs' } })
    expect(talk.received({ id: 1, result: {} })).toBe(true)
    expect(talk.pendingCount()).toBe(1)
    expect(talk.lostIds()).toMatchObject([
      { id: 'a', error: { code: -32603, message: expect.stringMatching(/Call again\.$/) } },
    ])
    expect(talk.pendingCount()).toBe(0)
  })

  it('does not invite to submit a job twice', () => {
    const talk = open()
    talk.say({ id: 1, method: 'tools/call', params: { name: 'submit_job' } })
    expect(talk.lostIds()[0].error.message).toContain('check list_jobs')
  })

  it('keeps numbers and strings apart as ids', () => {
    const talk = open()
    talk.say({ id: 1, method: 'tools/list' })
    talk.say({ id: '1', method: 'tools/list' })
    talk.received({ id: '1', result: {} })
    expect(talk.lostIds()).toMatchObject([{ id: 1 }])
  })

  it('forgets what the client cancelled', () => {
    const talk = open()
    talk.say({ id: 1, method: 'tools/call', params: {} })
    talk.say({ method: 'notifications/cancelled', params: { requestId: 1 } })
    expect(talk.pendingCount()).toBe(0)
    expect(talk.lostIds()).toEqual([])
  })

  it('opens an older conversation again without the client noticing', () => {
    const talk = open()
    talk.say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } })
    talk.received({ id: 0, result: {} })
    talk.say({ method: 'notifications/initialized' })
    talk.say({ id: 1, method: 'resources/subscribe', params: { uri: 'job://a' } })
    talk.received({ id: 1, result: {} })
    talk.say({ id: 2, method: 'resources/subscribe', params: { uri: 'job://b' } })
    talk.received({ id: 2, result: {} })
    talk.say({ id: 3, method: 'resources/unsubscribe', params: { uri: 'job://b' } })
    talk.received({ id: 3, result: {} })
    talk.failInFlight()
    const { toDaemon, toClient } = talk.resumed()
    expect(toDaemon).toMatchObject([
      { method: 'initialize', params: { protocolVersion: '2025-11-25' } },
      { method: 'notifications/initialized' },
      { method: 'resources/subscribe', params: { uri: 'job://a' } },
    ])
    expect(toClient).toMatchObject([
      { method: 'notifications/resources/updated', params: { uri: 'job://a' } },
    ])
    for (const { id } of toDaemon.filter(message => 'id' in message))
      expect(talk.received({ id, result: {} })).toBe(false)
  })

  it('asks an unanswered opening again under its own id', () => {
    const talk = open()
    talk.say({ id: 0, method: 'initialize', params: {} })
    expect(talk.lostIds()).toEqual([])
    expect(talk.resumed().toDaemon).toEqual([{ id: 0, method: 'initialize', params: {} }])
    expect(talk.received({ id: 0, result: {} })).toBe(true)
  })

  it('listens again to what a newer client listens to, and acknowledges it only once', () => {
    const talk = open()
    const params = { notifications: { resourceSubscriptions: ['job://a'], resourcesListChanged: true } }
    talk.say({ id: 7, method: 'subscriptions/listen', params })
    const ack = {
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: { [SUBSCRIPTION]: 7 } },
    }
    expect(talk.received(ack)).toBe(true)
    expect(talk.pendingCount()).toBe(0)
    expect(talk.lostIds()).toEqual([])
    const { toDaemon, toClient } = talk.resumed()
    expect(toDaemon).toEqual([{ id: 7, method: 'subscriptions/listen', params }])
    expect(toClient).toMatchObject([
      { method: 'notifications/resources/updated', params: { uri: 'job://a', _meta: { [SUBSCRIPTION]: 7 } } },
      { method: 'notifications/resources/list_changed', params: { _meta: { [SUBSCRIPTION]: 7 } } },
    ])
    expect(talk.received(ack)).toBe(false)
    expect(talk.received(ack)).toBe(true)
  })

  it('answers everything when there is no daemon to be had, and then starts from nothing', () => {
    const talk = open()
    talk.say({ id: 0, method: 'initialize', params: {} })
    talk.say({ id: 1, method: 'subscriptions/listen', params: {} })
    const answers = talk.failAll('disk full').map(line => JSON.parse(line))
    expect(answers).toMatchObject([
      { id: 0, error: { message: 'disk full' } },
      { id: 1, error: { message: 'disk full' } },
    ])
    expect(talk.resumed()).toEqual({ toDaemon: [], toClient: [] })
  })
})

describe('a line', () => {
  it.each(['', 'null', '[]', '7', '{', '"x"'])('%j is no message', line => {
    expect(parseMessage(Buffer.from(line))).toBeUndefined()
  })
})
