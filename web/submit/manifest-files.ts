/** A file of the workspace, as a manifest carries it. */
export interface ManifestFile {
  readonly path: string
  readonly text?: string
  /** Base64. */
  readonly content?: string
}

/** The size limit of a manifest. Larger files belong in a workspace. */
const MOST_BYTES = 12 * 2 ** 20

/** Reads files that the user chose or dropped. One with the name of an earlier file takes its place. */
export const addFiles = async (
  present: readonly ManifestFile[],
  chosen: readonly File[],
): Promise<ManifestFile[]> => {
  const bytes = chosen.reduce((sum, { size }) => sum + size, 0)
  if (bytes > MOST_BYTES)
    throw new Error(
      `These files have ${Math.ceil(bytes / 2 ** 20)} MiB, and a job takes ${MOST_BYTES / 2 ** 20}: run deputy run --workspace DIRECTORY instead.`,
    )
  const added = await Promise.all(chosen.map(readFile))
  const names = new Set(added.map(({ path }) => path))
  return [...present.filter(({ path }) => !names.has(path)), ...added]
}

const readFile = async (file: File): Promise<ManifestFile> => {
  const bytes = new Uint8Array(await file.arrayBuffer())
  try {
    return { path: file.name, text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { path: file.name, content: toBase64(bytes) }
  }
}

/** In pieces: a call takes only so many arguments. */
const toBase64 = (bytes: Uint8Array): string => {
  let text = ''
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}
