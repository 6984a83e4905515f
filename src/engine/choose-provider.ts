import { AppError } from '../jobs/errors.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { didYouMean } from '../jobs/nearest.ts'
import type { Fit, Provider, Readiness } from '../ports.ts'
import { hasSlots } from './provider-readiness.ts'

export interface Choices {
  /** `auto` picks the first of these that is ready and fits. */
  readonly order: readonly string[]
  readonly providers: ReadonlyMap<string, Provider>
  /** The cached readiness; undefined before the first check. */
  readiness(name: string): Readiness | undefined
}

export interface Choice {
  readonly provider: Provider
  /** Why this one, for the answer to the submit. */
  readonly because: string
}

/** Returns the provider for a manifest; throws an error that lists why each provider was rejected. */
export const chooseProvider = (manifest: Manifest, wanted: string, choices: Choices): Choice => {
  if (wanted !== 'auto')
    return {
      provider: named(manifest, wanted, choices),
      because: 'the manifest or defaults.runtime names it',
    }
  const reasons: string[] = []
  for (const name of choices.order) {
    const provider = choices.providers.get(name)
    // Skip providers without slots silently, unless the job has requirements: then their reason helps the user.
    if (
      provider === undefined ||
      (!hasSlots(provider) && manifest.requires === undefined && manifest.image === undefined)
    )
      continue
    const fit = fitOf(provider, manifest)
    if (!fit.ok) {
      reasons.push(`${name}: ${fit.reason}`)
      continue
    }
    const readiness = choices.readiness(name)
    if (readiness === undefined || readiness.ready)
      return {
        provider,
        because: reasons.length === 0 ? 'auto: it is the first that is ready' : `auto: ${reasons.join('; ')}`,
      }
    reasons.push(`${name}: ${firstFailure(readiness)}`)
  }
  throw new AppError(
    'unsupported',
    `No runtime can run this job (${reasons.join('; ') || 'none is configured'}).`,
    { hint: hintFor(manifest), details: { reasons } },
  )
}

const named = (manifest: Manifest, wanted: string, { providers }: Choices): Provider => {
  const provider = providers.get(wanted)
  const known = [...providers.values()].filter(hasSlots).map(({ name }) => name)
  if (provider === undefined)
    throw new AppError(
      'unsupported',
      `The runtime '${wanted}' is not configured${didYouMean(wanted, known) || '.'}`,
      {
        hint: `Configured: ${['auto', ...known].join(', ')}. deputy doctor shows what each needs.`,
      },
    )
  assertFits(provider, manifest)
  return provider
}

const fitOf = (provider: Provider, manifest: Manifest): Fit =>
  manifest.isolation === 'vm' && provider.ownKernel !== true
    ? { ok: false, reason: 'its jobs share a kernel, and the job asks for isolation: vm', hint: VM_HINT }
    : provider.fits(manifest)

const VM_HINT =
  'Set up VMs on this computer (deputy microvm setup) or Proxmox VE (deputy proxmox --help), or set container.runtimeClass to an OCI runtime such as kata.'

export const assertFits = (provider: Provider, manifest: Manifest): void => {
  const fit = fitOf(provider, manifest)
  if (fit.ok) return
  const kept = manifest.machine === undefined ? "set 'runtime' to 'auto'" : "leave out 'machine'"
  throw new AppError(
    'unsupported',
    `The runtime '${provider.name}' cannot run this job: ${fit.reason.replace(/\.$/, '')}.`,
    { hint: fit.hint ?? `Change that part of the manifest, or ${kept}.` },
  )
}

/** A job with requirements gets the command that shows which node meets them. */
const hintFor = ({ requires, isolation }: Manifest): string => {
  if (isolation === 'vm') return VM_HINT
  if (requires === undefined) return 'deputy doctor shows what each runtime needs.'
  return requires.node === undefined
    ? 'deputy nodes list shows what each node has; deputy nodes add adds a node.'
    : 'deputy nodes list shows all nodes.'
}

const firstFailure = (readiness: Readiness): string => {
  const failed = readiness.checks.find(check => check.status === 'failed')
  return failed === undefined ? 'not ready' : `${failed.message}${failed.fix ? ` (${failed.fix})` : ''}`
}
