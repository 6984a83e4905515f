import { editConfigFile } from '../config/config-document.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { HostAccess } from '../mcp/tools/cluster/ask-for-host.ts'

/**
 * Whether jobs may run on this computer without isolation. The user can be asked, unless the environment of the daemon
 * decides: it wins over the file that the answer is written to.
 */
export const createHostAccess = (
  { config, settings }: LoadedConfig,
  configFile: string,
  reload: () => void,
): HostAccess => {
  const isFixed = settings.some(({ path, origin }) => path === 'host.allow' && origin.startsWith('env '))
  const allow = (): void => {
    editConfigFile(configFile, document => document.setIn(['host', 'allow'], true))
    reload()
  }
  return { allowed: config.host.allow, ...(!isFixed && { allow }) }
}
