/** URIs of the MCP resources of a job. */
export const jobUri = (id: string): string => `job://${id}`

export const logUri = (id: string): string => `job://${id}/log`

/** Decodes the path of an artifact URI; undefined when it is malformed. */
export const artifactPath = (encoded: string): string | undefined => {
  try {
    return encoded.split('/').map(decodeURIComponent).join('/')
  } catch {
    return undefined
  }
}
