import { realpath } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import {
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { BridgeClient } from './bridge-client.ts'
import { clientCapability } from './client-info.ts'

const KEY = 'roots'
const MAX_ROOTS = 100

/** The directory that the client was started in, and the roots it sent in response to `requestRoots`. */
export const clientDirectories = async (
  bridge: BridgeClient | undefined,
  ctx: ServerContext,
): Promise<string[]> => {
  if (bridge === undefined) return []
  const answer = inputResponse(ctx.mcpReq.inputResponses, KEY)
  const roots = answer.kind === 'roots' ? answer.roots.slice(0, MAX_ROOTS) : []
  const paths = [bridge.directory, ...roots.map(({ uri }) => pathOf(uri))]
  const real = paths.map(path => (path === undefined ? undefined : realpath(path).catch(() => undefined)))
  return (await Promise.all(real)).filter(path => path !== undefined)
}

/**
 * Asks the client for its roots, if it supports them and has not sent them yet. The SDK asks clients of older protocol
 * revisions with a separate request; clients of the current revision repeat the call with the roots.
 */
export const requestRoots = (
  server: McpServer,
  bridge: BridgeClient | undefined,
  ctx: ServerContext,
): InputRequiredResult | undefined => {
  if (bridge === undefined || clientCapability(server, ctx, 'roots') === undefined) return undefined
  if (ctx.mcpReq.inputResponses !== undefined && KEY in ctx.mcpReq.inputResponses) return undefined
  return inputRequired({ inputRequests: { [KEY]: inputRequired.listRoots() } })
}

const pathOf = (uri: string): string | undefined => {
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined
  }
}
