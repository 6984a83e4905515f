import { LIMITS } from './limits.ts'

/** Path of the workspace inside every machine. */
export const WORKSPACE = '/work'
/** Another name of it, for manifests written for mcp-delegation-server. */
export const WORKSPACE_ALIAS = '/workspace'
/** Directory of the workspace that holds the artifacts of needed jobs. */
export const NEEDS_DIRECTORY = 'needs'

/** Returns why a path of `files` is refused, or undefined when it is valid. */
export const pathProblem = (path: string): string | undefined => {
  if (path === '') return 'is empty'
  if (path.includes('\0')) return 'contains a NUL byte'
  if (new TextEncoder().encode(path).length > LIMITS.pathBytes)
    return `is longer than ${LIMITS.pathBytes} bytes`
  const parts = path.split('/')
  if (parts.includes('..')) return "contains '..'"
  if (path.endsWith('/') || parts.at(-1) === '.') return 'names a directory'
  if (path.startsWith('/') && absoluteTarget(path) === undefined)
    return `is absolute and neither below ${WORKSPACE} nor below /tmp`
  return undefined
}

export interface FileTarget {
  root: 'workspace' | 'tmp'
  /** Relative to the root, normalised, never empty. */
  relative: string
}

/** Where a file of a manifest is written. The caller has validated the path with pathProblem. */
export const fileTarget = (path: string): FileTarget =>
  path.startsWith('/') ? absoluteTarget(path)! : { root: 'workspace', relative: clean(path) }

/** The files of a manifest that are written into the workspace, relative to it. */
export const givenInWorkspace = (files: readonly { path: string }[] = []): string[] =>
  files.flatMap(file => {
    const { root, relative } = fileTarget(file.path)
    return root === 'workspace' ? [relative] : []
  })

const absoluteTarget = (path: string): FileTarget | undefined => {
  const normal = `/${clean(path)}`
  for (const directory of [WORKSPACE, WORKSPACE_ALIAS])
    if (normal.startsWith(`${directory}/`))
      return { root: 'workspace', relative: normal.slice(directory.length + 1) }
  if (normal.startsWith('/tmp/')) return { root: 'tmp', relative: normal.slice('/tmp/'.length) }
  return undefined
}

const clean = (path: string): string =>
  path
    .split('/')
    .filter(part => part !== '' && part !== '.')
    .join('/')

/** Whether a path sent by a machine is relative, has no `.` and `..` parts, and has a sane length. */
export const isSafePath = (path: string): boolean =>
  path.length <= 4096 &&
  !path.includes('\0') &&
  path.split('/').every(part => part !== '' && part !== '.' && part !== '..')

/**
 * Whether a path is inside a git directory, where the next git command would run a hook or a configured program.
 * Applies the same checks as git: any letter case, names as NTFS shortens or extends them, and names with characters
 * that HFS+ ignores.
 */
export const isGitInternal = (path: string): boolean => path.split(/[/\\]/).some(isGitDirectory)

const isGitDirectory = (name: string): boolean => {
  const visible = name.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '')
  const stream = visible.indexOf(':')
  let end = stream === -1 ? visible.length : stream
  while (end > 0 && (visible[end - 1] === '.' || visible[end - 1] === ' ')) end--
  const plain = visible.slice(0, end).toLowerCase()
  return plain === '.git' || plain === 'git~1'
}
