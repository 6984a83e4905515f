import type { Client } from '../../client/daemon-client.ts'
import { ownDirectories } from '../../config/home.ts'
import { packDirectory } from '../../files/pack-directory.ts'
import { refuseOwnDirectory } from '../../files/refuse-own-directory.ts'
import { workspaceDirectory } from '../../files/workspace-directory.ts'
import { formatSize } from '../../jobs/sizes.ts'
import type { Context } from '../context.ts'
import { createStatusLine } from '../terminal/status-line.ts'

/** Packs a directory and stores it with the daemon; resolves with the blob that a manifest names. */
export const uploadWorkspace = async (
  context: Context,
  client: Client,
  directory: string,
  options: { quiet: boolean },
): Promise<string> => {
  const top = await workspaceDirectory(directory)
  await refuseOwnDirectory(top, ownDirectories(context.home))
  const line = createStatusLine(context.err, context.errColors)
  let bytes = 0
  const packed = async function* () {
    for await (const chunk of packDirectory(top)) {
      bytes += chunk.length
      if (!options.quiet) line.set(`packing ${directory}, ${formatSize(bytes)}`)
      yield chunk
    }
  }
  try {
    return (await client.putBlob(packed())).sha256
  } finally {
    await line.stop()
  }
}
