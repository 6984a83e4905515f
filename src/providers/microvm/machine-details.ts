import type { Manifest } from '../../jobs/manifest.ts'
import type { Machine } from '../../ports.ts'

/** What is recorded of a machine. */
export interface MicrovmDetails {
  /** The image that it was booted from. */
  readonly image: string
  /** How its jobs are isolated. */
  readonly isolation: readonly string[]
  /** The network of its last job. */
  readonly network: NonNullable<Manifest['network']>
  /** Set when it is ready for a command. It cannot boot twice. */
  readonly boot?: string
}

export const detailsOf = ({ details }: Pick<Machine, 'details'>): MicrovmDetails => {
  const { image, isolation, network, boot } = details
  return {
    image: typeof image === 'string' ? image : '',
    isolation: Array.isArray(isolation) ? isolation.map(String) : [],
    network: network === 'full' ? network : Array.isArray(network) ? network.map(String) : 'none',
    ...(typeof boot === 'string' && { boot }),
  }
}
