import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { fullName } from './image-reference.ts'
import type { ContainerDetails } from './machine-details.ts'

/** The network of a job. A follow-up job that asks for none keeps that of its machine. */
export const networkFor = (manifest: Manifest, { network }: ContainerDetails): ContainerDetails['network'] =>
  manifest.network ?? (manifest.machine === undefined ? 'none' : network)

/** What was decided when the container was created. */
const FIXED = ['platform', 'gpus', 'pull', 'resources'] as const

/** Refuses a follow-up job that asks for what only a new container can have. */
export const assertSameContainer = (manifest: Manifest, details: ContainerDetails): void => {
  const { machine, image } = manifest
  if (machine === undefined) return
  const refuse = (what: string): never => {
    throw new AppError('unsupported', `The kept container ${machine} ${what}.`, {
      hint: 'Leave that out, or submit the job without machine.',
    })
  }
  const has = details.image?.name ?? ''
  if (image !== undefined && fullName(image) !== fullName(has))
    refuse(`has the image '${has}', not '${image}'`)
  const key = FIXED.find(name => manifest[name] !== undefined)
  if (key !== undefined) refuse(`cannot change '${key}'`)
  const isFull = details.network === 'full'
  // Without a network, a list of domains needs nothing of the container: the proxy is reached over the engine.
  if (isFull !== (networkFor(manifest, details) === 'full'))
    refuse(
      isFull ? 'has the network of the engine, and cannot give it up' : 'was created without network full',
    )
}
