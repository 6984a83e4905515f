/** Addresses of what a job offers as MCP resources. */
export const jobUri = (id: string): string => `job://${id}`

export const logUri = (id: string): string => `job://${id}/log`

export const artifactUri = (id: string, path: string): string =>
  `job://${id}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`

/** The path in an artifact's address, or undefined when it is not one that `artifactUri` could have made. */
export const artifactPath = (encoded: string): string | undefined => {
  try {
    return encoded.split('/').map(decodeURIComponent).join('/')
  } catch {
    return undefined
  }
}
