import { join } from 'node:path'
import { withoutToken } from '../../proxmox/credentials.ts'
import { createProxmox, type Proxmox } from '../../proxmox/proxmox-client.ts'
import { parseSettings } from '../../proxmox/proxmox-settings.ts'
import type { Context } from '../context.ts'

/** Connects as the user of the environment variables instead of the token. */
export const withCluster = async <T>(
  context: Context,
  work: (proxmox: Proxmox) => Promise<T>,
): Promise<T> => {
  const cacheDir = join(context.home.cacheDir, 'proxmox')
  const proxmox = createProxmox(parseSettings(withoutToken(context.env), context.home.trustedHosts), {
    cacheDir,
  })
  try {
    return await work(proxmox)
  } finally {
    await proxmox.close()
  }
}
