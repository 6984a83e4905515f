import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

interface Stored {
  readonly id: number
  readonly stream: string
  readonly message: JSONRPCMessage
  readonly bytes: number
}

const MAX_BYTES = 4 * 1024 * 1024

/**
 * Keeps the last messages of a session, so that a client of an older protocol revision can resume after its connection
 * broke. Older messages are dropped to limit memory; the output of jobs is in the database.
 */
export const createEventStore = (): EventStore => {
  const events: Stored[] = []
  let count = 0
  let bytes = 0
  return {
    storeEvent: async (stream, message) => {
      const size = JSON.stringify(message).length
      events.push({ id: ++count, stream, message, bytes: size })
      bytes += size
      while (bytes > MAX_BYTES && events.length > 1) bytes -= events.shift()?.bytes ?? 0
      return `${count}/${stream}`
    },
    getStreamIdForEventId: async id => streamOf(id),
    replayEventsAfter: async (lastId, { send }) => {
      const stream = streamOf(lastId)
      const after = Number.parseInt(lastId, 10)
      for (const event of [...events])
        if (event.stream === stream && event.id > after && Object.keys(event.message).length > 0)
          await send(`${event.id}/${stream}`, event.message)
      return stream
    },
  }
}

const streamOf = (eventId: string): string => eventId.slice(eventId.indexOf('/') + 1)
