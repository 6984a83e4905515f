import { AppError } from '../jobs/errors.ts'
import { isSafePath } from '../jobs/paths.ts'
import type { Channel } from './channel.ts'

interface WorkspaceFile {
  path: string
  type: 'file' | 'link' | 'other'
  size: number
  mode: number
}

export interface WorkspaceListing {
  files: WorkspaceFile[]
  /** Set when there are more. */
  truncated: boolean
  /** How many have names that are no UTF-8: they cannot be shown or asked for. */
  unnamed: number
  /** Written since the workspace was filled. */
  changed: ReadonlySet<string>
}

/** What a workspace began with. */
export interface BaseListing {
  files: ReadonlySet<string>
  links: ReadonlySet<string>
}

interface ListRequest {
  channel: Channel
  workspace: string
  signal: AbortSignal
}

const MAX_FILES = 200_000
const MAX_LISTING = 128 * 1024 * 1024

/** Everything in a workspace but directories. */
export const listFiles = async (request: ListRequest): Promise<WorkspaceListing> => {
  const [files, changed] = await readRecords(request, false)
  return {
    files: files.names.slice(0, MAX_FILES).flatMap(parseFile),
    truncated: files.names.length > MAX_FILES,
    unnamed: files.unnamed,
    changed: new Set(changed.names.map(stripDot)),
  }
}

export const listBase = async (request: ListRequest): Promise<BaseListing> => {
  const [files, links] = await readRecords(request, true)
  return { files: new Set(files.names.map(stripDot)), links: new Set(links.names.map(stripDot)) }
}

interface Records {
  names: string[]
  unnamed: number
}

/** Two lists of records that end with NUL, each list with an empty record at its end. */
const readRecords = async (
  { channel, workspace, signal }: ListRequest,
  base: boolean,
): Promise<[Records, Records]> => {
  const chunks: Buffer[] = []
  let size = 0
  const { cut } = await channel.exchange([{ kind: 'files', workspace, base }], {
    signal,
    onAnswer: (answer, data) => {
      if (answer.kind !== 'files') return
      size += data.length
      if (size > MAX_LISTING) throw tooMany(workspace)
      chunks.push(data)
    },
  })
  if (cut) throw cut
  const text = Buffer.concat(chunks).toString('latin1')
  const end = text.startsWith('\0') ? 0 : text.indexOf('\0\0') + 1
  const rest = text.slice(end + 1)
  if ((end === 0 && !text.startsWith('\0')) || !(rest === '\0' || rest.endsWith('\0\0')))
    throw new AppError('unavailable', `The list of the files of workspace ${workspace} is not complete.`)
  return [decode(text.slice(0, end)), decode(rest)]
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

const decode = (latin1: string): Records => {
  const all = latin1.split('\0').filter(record => record !== '')
  const names = all.flatMap(record => {
    try {
      return [utf8.decode(Buffer.from(record, 'latin1'))]
    } catch {
      return []
    }
  })
  return { names, unnamed: all.length - names.length }
}

const parseFile = (record: string): WorkspaceFile[] => {
  const match = /^(\S) (\d{1,15}) ([0-7]{1,5}) ([\s\S]+)$/.exec(record)
  const path = match && stripDot(match[4]!)
  if (!match || !path || !isSafePath(path)) return []
  const type = match[1] === 'f' ? 'file' : match[1] === 'l' ? 'link' : 'other'
  return [{ path, type, size: Number(match[2]), mode: Number.parseInt(match[3]!, 8) }]
}

const stripDot = (path: string): string => path.replace(/^\.\//, '')

const tooMany = (workspace: string): AppError =>
  new AppError('too_large', `The list of the files of workspace ${workspace} has more than 128 MiB.`, {
    hint: 'Collect artifacts from a workspace with fewer files.',
  })
