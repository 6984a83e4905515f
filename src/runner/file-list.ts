import { type Listing, parseListing } from '../files/file-listing.ts'
import { AppError } from '../jobs/errors.ts'
import type { Channel } from './channel.ts'

const MAX_LISTING = 128 * 1024 * 1024

/** Everything in a workspace but directories. */
export const listFiles = async ({
  channel,
  workspace,
  signal,
}: {
  readonly channel: Channel
  readonly workspace: string
  readonly signal: AbortSignal
}): Promise<Listing> => {
  const chunks: Buffer[] = []
  let size = 0
  const { cut } = await channel.exchange([{ kind: 'files', workspace }], {
    signal,
    onAnswer: (answer, data) => {
      if (answer.kind !== 'files') return
      size += data.length
      if (size > MAX_LISTING) throw tooMany(workspace)
      chunks.push(data)
    },
  })
  if (cut) throw cut
  return parseListing(Buffer.concat(chunks))
}

const tooMany = (workspace: string): AppError =>
  new AppError('too_large', `The list of the files of workspace ${workspace} has more than 128 MiB.`, {
    hint: 'Collect artifacts from a workspace with fewer files.',
  })
