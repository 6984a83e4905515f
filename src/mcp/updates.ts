import type { McpServer } from '@modelcontextprotocol/server'
import type { Deputy } from '../engine/deputy.ts'
import { jobUri, logUri } from './job-uris.ts'
import { refreshTools } from './unlisted-tools.ts'

export type Update =
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'list' }
  | { readonly kind: 'tools' }

/** Turns changes of jobs into resource updates. All connections share one instance. */
export interface Updates {
  subscribe(listener: (update: Update) => void): () => void
  /** Call this when a toolset may have become listed or unlisted. */
  toolsChanged(): void
  close(): void
}

/** A busy job changes a thousand times a second, so updates are combined. */
const RESOURCE_EVERY_MS = 250
const LIST_EVERY_MS = 1000
const REMEMBERED_IDS = 10_000

export const createUpdates = (deputy: Deputy): Updates => {
  const listeners = new Set<(update: Update) => void>()
  const changed = new Set<string>()
  const seen = new Set<string>()
  let resourceTimer: NodeJS.Timeout | undefined
  let listTimer: NodeJS.Timeout | undefined

  const publish = (update: Update) => {
    for (const listener of listeners) listener(update)
  }
  const stop = deputy.onChange(({ jobId, kind }) => {
    if (listeners.size === 0) return
    changed.add(kind === 'output' ? logUri(jobId) : jobUri(jobId))
    resourceTimer ??= setTimeout(() => {
      resourceTimer = undefined
      const uris = [...changed]
      changed.clear()
      for (const uri of uris) publish({ kind: 'resource', uri })
    }, RESOURCE_EVERY_MS)
    if (seen.has(jobId)) return
    seen.add(jobId)
    if (seen.size > REMEMBERED_IDS) seen.delete(seen.values().next().value ?? '')
    listTimer ??= setTimeout(() => {
      listTimer = undefined
      publish({ kind: 'list' })
    }, LIST_EVERY_MS)
  })

  return {
    subscribe: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    toolsChanged: () => publish({ kind: 'tools' }),
    close: () => {
      stop()
      clearTimeout(resourceTimer)
      clearTimeout(listTimer)
      listeners.clear()
    },
  }
}

/**
 * Forwards updates to the client of a connected server. Clients of older protocol revisions subscribe to each URI; for
 * newer ones the SDK drops the updates that they do not listen to.
 */
export const announceUpdates = (server: McpServer, era: 'legacy' | 'modern', updates: Updates): void => {
  const subscribed = new Set<string>()
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
      subscribed.add(params.uri)
      return {}
    })
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      subscribed.delete(params.uri)
      return {}
    })
  }
  const unsubscribe = updates.subscribe(update => {
    if (!server.isConnected()) return
    if (update.kind === 'list') server.sendResourceListChanged()
    else if (update.kind === 'tools') refreshTools(server)
    // Ignore a closed connection: `onclose` handles it.
    else if (era === 'modern' || subscribed.has(update.uri))
      server.server.sendResourceUpdated({ uri: update.uri }).catch(() => {})
  })
  server.server.onclose = unsubscribe
}
