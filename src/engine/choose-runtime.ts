import { AppError } from '../jobs/errors.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { didYouMean } from '../jobs/nearest.ts'
import type { Readiness, Runtime } from '../ports.ts'
import { isAwake } from './runtime-readiness.ts'

/** `auto` takes the strongest isolation that is ready. `host` has none and is only ever taken by name. */
const PREFERENCE = ['proxmox', 'microvm', 'sandbox', 'ssh']

export interface Choices {
  readonly runtimes: ReadonlyMap<string, Runtime>
  /** The last known readiness; undefined while it has not been checked. */
  readiness(name: string): Readiness | undefined
}

/** The runtime for a manifest, or an error that tells why each one cannot take it. */
export const chooseRuntime = (manifest: Manifest, wanted: string, choices: Choices): Runtime => {
  if (wanted !== 'auto') return named(manifest, wanted, choices)
  const reasons: string[] = []
  for (const name of PREFERENCE) {
    const runtime = choices.runtimes.get(name)
    // One that has nothing to run on is no news, unless the job asks for what only it could have.
    if (runtime === undefined || (!isAwake(runtime) && manifest.requires === undefined)) continue
    const fit = runtime.fits(manifest)
    if (!fit.ok) {
      reasons.push(`${name}: ${fit.reason}`)
      continue
    }
    const readiness = choices.readiness(name)
    if (readiness === undefined || readiness.ready) return runtime
    reasons.push(`${name}: ${firstFailure(readiness)}`)
  }
  throw new AppError(
    'unsupported',
    `No runtime can run this job (${reasons.join('; ') || 'none is configured'}).`,
    { hint: hintFor(manifest), details: { reasons } },
  )
}

const named = (manifest: Manifest, wanted: string, { runtimes }: Choices): Runtime => {
  const runtime = runtimes.get(wanted)
  const known = [...runtimes.values()].filter(isAwake).map(({ name }) => name)
  if (runtime === undefined)
    throw new AppError(
      'unsupported',
      `The runtime '${wanted}' is not configured${didYouMean(wanted, known) || '.'}`,
      {
        hint:
          wanted === 'host'
            ? 'Running without isolation must be allowed first: host: { allow: true } in the configuration, or DEPUTY_ALLOW_HOST=true.'
            : `Configured: ${['auto', ...known].join(', ')}. deputy doctor tells what each needs.`,
      },
    )
  const fit = runtime.fits(manifest)
  if (!fit.ok)
    throw new AppError(
      'unsupported',
      `The runtime '${wanted}' cannot run this job: ${fit.reason.replace(/\.$/, '')}.`,
      { hint: fit.hint ?? "Change what it names, or leave 'runtime' to 'auto'." },
    )
  return runtime
}

/** Who asks for something in particular wants to know who has it. */
const hintFor = ({ requires }: Manifest): string => {
  if (requires === undefined) return 'deputy doctor tells what each runtime needs.'
  return requires.node === undefined
    ? 'deputy nodes list shows what each node has; deputy nodes add brings another.'
    : 'deputy nodes list shows the nodes there are.'
}

const firstFailure = (readiness: Readiness): string => {
  const failed = readiness.checks.find(check => check.status === 'failed')
  return failed === undefined ? 'not ready' : `${failed.message}${failed.fix ? ` (${failed.fix})` : ''}`
}
