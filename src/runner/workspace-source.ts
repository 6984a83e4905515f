import type { Listing } from '../files/file-listing.ts'
import type { Channel } from './channel.ts'
import { listFiles } from './file-list.ts'
import { readFiles } from './read-files.ts'
import type { VisitFile } from './tar-files.ts'

/** The workspace of a machine whose files are collected. The machine is not trusted. */
export interface WorkspaceSource {
  /** Lists all entries except directories. A list that is too long is cut; wanted files are kept where possible. */
  list(isWanted: (path: string) => boolean): Promise<Listing>
  /** Reads files one after the other from a tar of at most `limit` bytes; throws when the tar is not complete. */
  read(paths: readonly string[], limit: number, visit: VisitFile): Promise<void>
}

/** A workspace behind a channel to its runner. */
export const channelSource = (request: {
  readonly channel: Channel
  readonly workspace: string
  readonly signal: AbortSignal
}): WorkspaceSource => ({
  list: () => listFiles(request),
  read: (paths, limit, visit) => readFiles({ ...request, paths, limit }, visit),
})
