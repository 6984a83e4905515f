import type { Manifest } from '../../jobs/manifest.ts'
import type { Machine } from '../../ports.ts'
import { field, text } from './engine-address.ts'
import type { LocalImage } from './pull-image.ts'

/** What is recorded of a machine. */
export interface ContainerDetails {
  /** The address of its engine. */
  readonly engine?: string
  readonly engineLabel?: string
  readonly image?: Pick<LocalImage, 'name' | 'id' | 'digest'>
  /** The network of its last job, for a follow-up job that names none. */
  readonly network: NonNullable<Manifest['network']>
  /** How its jobs are isolated, apart from the network. */
  readonly isolation: readonly string[]
  /** When the container was started; set when it is ready for a command. */
  readonly boot?: string
}

export const detailsOf = ({ details }: Pick<Machine, 'details'>): ContainerDetails => {
  const [engine, engineLabel, boot] = ['engine', 'engineLabel', 'boot'].map(name => text(details, name))
  const stored = field(details, 'image')
  const isolation = field(details, 'isolation')
  const network = field(details, 'network')
  const [name, id, digest] = ['name', 'id', 'digest'].map(one => text(stored, one))
  return {
    ...(engine !== undefined && { engine }),
    ...(engineLabel !== undefined && { engineLabel }),
    ...(boot !== undefined && { boot }),
    ...(name !== undefined &&
      id !== undefined && { image: { name, id, ...(digest !== undefined && { digest }) } }),
    network: Array.isArray(network) ? network.map(String) : network === 'full' ? 'full' : 'none',
    isolation: Array.isArray(isolation) ? isolation.map(String) : [],
  }
}
