import type { Selection } from './toolset.ts'

/** Reads the selection of a client: from headers on the Unix socket, from the query of the URL over HTTP. */
export const selectionOf = (
  headers: { get(name: string): string | null | undefined },
  query: URLSearchParams = new URLSearchParams(),
): Selection => {
  const toolsets = query.get('toolsets') ?? headers.get('x-deputy-toolsets')
  const readOnly = query.get('read_only') ?? headers.get('x-deputy-read-only')
  const settings = headers.get('x-deputy-settings')
  return {
    ...(settings && { settings: settings.split(',').slice(0, 50) }),
    ...(toolsets && {
      toolsets: toolsets
        .split(',')
        .map(name => name.trim())
        .filter(Boolean)
        .slice(0, 50),
    }),
    readOnly: readOnly !== null && readOnly !== undefined && !['', '0', 'false'].includes(readOnly),
  }
}

export const selectionKey = ({ toolsets, readOnly, settings }: Selection): string =>
  JSON.stringify([toolsets ? [...new Set(toolsets)].sort() : null, readOnly === true, settings ?? []])
