import type { Manifest } from '../../jobs/manifest.ts'
import { parseSize } from '../../jobs/sizes.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

/** The VM that a manifest asks for. */
export interface VmSpec {
  readonly template: string
  readonly cores: number
  /** MiB */
  readonly memory: number
  readonly disk: number | undefined
  readonly network: 'none' | 'full'
}

export const vmSpecFor = (
  manifest: Manifest | undefined,
  provider: ProxmoxProviderOptions,
  poolTemplate?: string,
): VmSpec => ({
  template: manifest?.vmTemplate ?? poolTemplate ?? provider.template,
  cores: Math.max(1, Math.ceil(manifest?.resources?.cpu ?? provider.defaults.cpu)),
  memory: Math.ceil(
    (manifest?.resources?.memory === undefined
      ? provider.defaults.memory
      : parseSize(manifest.resources.memory)) /
      2 ** 20,
  ),
  disk: manifest?.resources?.disk === undefined ? provider.defaults.disk : parseSize(manifest.resources.disk),
  // Everything on a list goes through our proxy.
  network: manifest?.network === 'full' ? 'full' : 'none',
})
