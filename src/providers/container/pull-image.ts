import { posix } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { field, text } from './engine-address.ts'
import { type EngineClient, inspectIfPresent } from './engine-client.ts'
import { fullName, parseImage } from './image-reference.ts'
import { createPullProgress } from './pull-progress.ts'

export interface ImageRequest {
  readonly image: string
  readonly pull: 'missing' | 'always' | 'never'
  /** As in `linux/arm64`. */
  readonly platform?: string | undefined
  /** The value of X-Registry-Auth for the registry of the image. */
  auth(registry: string): Promise<string | undefined>
  waiting?(what: string): void
  readonly signal: AbortSignal
}

/** An image that the engine has. */
export interface LocalImage {
  readonly name: string
  readonly id: string
  /** As in `linux/amd64`. */
  readonly platform: string
  /** As the registry knows it; absent for an image that was built or imported here. */
  readonly digest?: string
  /** The user that the image names; empty for root. */
  readonly user: string
  /** The directories that the image declares as volumes. */
  readonly volumes: readonly string[]
}

/** Makes sure that the engine has the image. */
export const ensureImage = async (client: EngineClient, request: ImageRequest): Promise<LocalImage> => {
  const { image, pull, platform } = request
  const found = pull === 'always' ? undefined : await inspectImage(client, request)
  if (found !== undefined && fits(found, platform)) return found
  if (pull === 'never')
    throw new AppError('not_found', `The engine does not have the image '${image}'${of(platform)}.`, {
      hint: `Pull it: docker pull ${image}, or set pull to 'missing'.`,
    })
  await pullImage(client, request)
  const pulled = await inspectImage(client, request)
  if (pulled === undefined) throw pullError(request, 'the engine does not have it after the pull')
  // An image of one platform is pulled whatever platform was asked for.
  if (!fits(pulled, platform))
    throw pullError(request, `no image found in ${image} for it, only for ${pulled.platform}`)
  return pulled
}

const fits = (image: LocalImage, platform: string | undefined): boolean => {
  const [os, arch] = (platform ?? '').split('/')
  const [itsOs, itsArch] = image.platform.split('/')
  return (!os || os === itsOs) && (!arch || arch === itsArch)
}

const of = (platform: string | undefined): string => (platform === undefined ? '' : ` for ${platform}`)

const inspectImage = async (
  client: EngineClient,
  { image, signal }: ImageRequest,
): Promise<LocalImage | undefined> => {
  const found = await inspectIfPresent(client, `/images/${image}/json`, signal)
  if (found === undefined) return undefined
  const { repository } = parseImage(image)
  const digests = field(found, 'RepoDigests')
  const digest = (Array.isArray(digests) ? digests : [])
    .map(String)
    .find(entry => parseImage(entry).repository === repository)
    ?.replace(/^.*@/, '')
  const config = field(found, 'Config')
  return {
    name: image,
    id: text(found, 'Id') ?? '',
    platform: `${text(found, 'Os') ?? ''}/${text(found, 'Architecture') ?? ''}`,
    ...(digest !== undefined && { digest }),
    user: text(config, 'User') ?? '',
    volumes: Object.keys(Object(field(config, 'Volumes'))).map(path => posix.resolve('/', path)),
  }
}

const pullImage = async (client: EngineClient, request: ImageRequest): Promise<void> => {
  const { image, platform, signal } = request
  const { registry } = parseImage(image)
  const auth = await request.auth(registry)
  const progress = createPullProgress(image, request.waiting)
  let problem: string | undefined
  try {
    await client.lines(
      {
        method: 'POST',
        path: '/images/create',
        query: { fromImage: fullName(image), ...(platform !== undefined && { platform }) },
        headers: auth === undefined ? {} : { 'x-registry-auth': auth },
        signal,
        timeoutMs: 0,
      },
      line => {
        problem ??= text(field(line, 'errorDetail'), 'message') ?? text(line, 'error')
        progress(line)
      },
    )
  } catch (error) {
    if (!(error instanceof AppError) || field(error.details, 'said') === undefined) throw error
    throw pullError(request, text(error.details, 'said') ?? error.message)
  }
  if (problem !== undefined) throw pullError(request, problem)
}

/** Registries and engines word these differently; the patterns are those of Docker 20.10 to 28 and Podman 4 and 5. */
const pullError = ({ image, platform }: ImageRequest, said: string): AppError => {
  const { registry } = parseImage(image)
  const because = `Cannot pull the image '${image}'${of(platform)}: ${said.trim().replace(/\.$/, '')}.`
  if (/no matching manifest|does not match the specified platform|no image found in .* for/i.test(said))
    return new AppError('unsupported', because, {
      hint: 'Choose a platform that the image has, or leave platform out.',
    })
  if (/unauthorized|authentication required|access denied|denied:|no basic auth/i.test(said))
    return new AppError('denied', because, {
      hint: `Check the name of the image. If it is private, log in: docker login ${registry === 'docker.io' ? '' : registry}`.trim(),
    })
  if (/manifest unknown|not found|name unknown|no such image|reading manifest/i.test(said))
    return new AppError('not_found', because, { hint: `Check the name and the tag: docker pull ${image}` })
  if (/no space left/i.test(said))
    return new AppError('too_large', because, { hint: 'The disk of the engine is full: docker system df' })
  return new AppError('unavailable', because, { hint: `Try it by hand: docker pull ${image}` })
}
