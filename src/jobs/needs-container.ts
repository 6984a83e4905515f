import type { Manifest } from './manifest.ts'

/** Why only a container can run the job. The keys after `image` change how an image is run, also the default one. */
export const needsContainer = ({ image, gpus, platform, pull }: Manifest): string | undefined => {
  if (image !== undefined) return `the image '${image}' needs a container`
  const key = Object.entries({ gpus, platform, pull }).find(([, value]) => value !== undefined)?.[0]
  return key && `'${key}' needs a container: name an image`
}
