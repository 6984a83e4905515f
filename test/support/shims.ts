import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { connectShim, type ShimLink } from '../../src/providers/local/shim-link.ts'

/** What each shim in a directory says of itself now; those that are ending say nothing. */
export const askShims = async (directory: string): Promise<ShimLink[]> => {
  const sockets = readdirSync(directory).filter(name => name.endsWith('.sock'))
  const links = await Promise.all(
    sockets.map(name => connectShim(join(directory, name)).catch(() => undefined)),
  )
  return links.flatMap(link => {
    link?.disconnect()
    return link === undefined ? [] : [link]
  })
}
