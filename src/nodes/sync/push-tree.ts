import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { pack } from 'tar-stream'
import { isPortable, TREE, type TreeEntry, type TreeSource } from '../../files/tree-source.ts'
import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/ssh-arguments.ts'
import { failureError } from '../ssh/ssh-errors.ts'
import type { Ssh } from '../ssh/ssh-session.ts'
import { deleteOldTrees, type TreeLimits } from './delete-old-trees.ts'

interface PushRequest {
  ssh: Ssh
  owner: string
  target: SshTarget
  /** Name of the copy on the node. */
  key: string
  source: TreeSource
  signal: AbortSignal
  /** Limits for all copies on the node. */
  limits?: TreeLimits
}

interface Pushed {
  entries: readonly TreeEntry[]
  sent: number
  deleted: number
  bytes: number
}

const KEY = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/
const DONE = 'deputy-synchronised'

/** Directory of the copy, relative to the home directory on the node. */
export const treeDirectory = (owner: string, key: string): string => {
  if (!KEY.test(key)) throw new AppError('invalid', `Invalid name '${key}' for a copy on a node.`)
  return `.cache/deputy/${owner}/trees/${key}`
}

/**
 * Updates the copy of a tree on a node and sends only changed files. The manifest lists the files of the copy. It is
 * deleted while the copy changes, so that an interrupted update leads to a full copy and never to a wrong one.
 */
export const pushTree = async (request: PushRequest): Promise<Pushed> => {
  const directory = treeDirectory(request.owner, request.key)
  const before = await readManifest(request, directory)
  const entries = await request.source.entries()
  const now = new Map(entries.map(entry => [entry.path, entry]))
  const changed = entries.filter(entry => !isSame(before.get(entry.path), entry))
  const removed = [...before.values()]
    .filter(entry => now.get(entry.path)?.type !== entry.type)
    .map(entry => entry.path)
  const bytes = changed.reduce((sum, entry) => sum + entry.size, 0)
  if (changed.length === 0 && removed.length === 0 && before.size > 0)
    return { entries, sent: 0, deleted: 0, bytes: 0 }
  if (removed.length > 0) await removePaths(request, directory, removed)
  await sendEntries(request, directory, {
    entries,
    wanted: new Set(changed.map(entry => entry.path)),
    fresh: before.size === 0,
  })
  // Old copies are deleted when a new one is made. A failure only costs disk space.
  if (before.size === 0) await deleteOldTrees(request).catch(() => undefined)
  return { entries, sent: changed.length, deleted: removed.length, bytes }
}

const isSame = (before: TreeEntry | undefined, entry: TreeEntry): boolean =>
  before !== undefined &&
  before.type === entry.type &&
  before.mode === entry.mode &&
  before.hash === entry.hash

const readManifest = async (request: PushRequest, directory: string): Promise<Map<string, TreeEntry>> => {
  const mark = `deputy-${randomBytes(9).toString('hex')}`
  const entries = new Map<string, TreeEntry>()
  let readable = true
  let marks = 0
  const read = createLineReader(line => {
    if (line.endsWith(mark)) marks++
    else if (marks === 1 && line !== '') {
      const entry = parseEntry(line)
      if (entry) entries.set(entry.path, entry)
      else readable = false
    }
  })
  const { target, signal } = request
  const script = `echo ${mark}; cat "$HOME/${directory}/manifest" 2>/dev/null\necho; echo ${mark}\n`
  await request.ssh.run({ target, signal, script, onStdout: chunk => void read(chunk) })
  // An incomplete manifest must not be used: deleted files would stay in the copy.
  if (marks !== 2) throw failureError(target, 'lost')
  // A manifest that cannot be parsed leads to a full copy.
  return readable ? entries : new Map()
}

const parseEntry = (line: string): TreeEntry | undefined => {
  try {
    const entry = JSON.parse(line) as Partial<TreeEntry> | null
    return typeof entry?.path === 'string' && isPortable(entry.path) ? (entry as TreeEntry) : undefined
  } catch {
    return undefined
  }
}

const createLineReader = (onLine: (line: string) => void): ((chunk: Buffer) => void) => {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  return chunk => {
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  }
}

const removePaths = async (
  request: PushRequest,
  directory: string,
  paths: readonly string[],
): Promise<void> => {
  const script = `d="$HOME/${directory}"; rm -f "$d/manifest"; cd "$d/${TREE}" && xargs -0 rm -rf && echo ${DONE}`
  const result = await request.ssh.run({
    target: request.target,
    signal: request.signal,
    script,
    input: Readable.from([paths.map(path => `./${path}\0`).join('')]),
  })
  assertDone(result, request)
}

const sendEntries = async (
  request: PushRequest,
  directory: string,
  { entries, wanted, fresh }: { entries: readonly TreeEntry[]; wanted: ReadonlySet<string>; fresh: boolean },
): Promise<void> => {
  const tar = pack()
  const filled = request.source
    .pack(tar, wanted)
    .then(() => {
      // The manifest is the last entry: when it arrives, all files have arrived.
      tar.entry({ name: 'manifest.new' }, `${entries.map(entry => JSON.stringify(entry)).join('\n')}\n`)
      tar.finalize()
    })
    // The node may have stopped reading; its own error message, read below, says why.
    .catch((error: unknown) => void tar.destroy(error instanceof Error ? error : new Error(String(error))))
  // Files of an earlier, interrupted copy must not become part of this one.
  const clean = fresh ? `chmod -R u+rwX "$d/${TREE}" 2>/dev/null; rm -rf "$d/${TREE}"; ` : ''
  const script = `umask 077; d="$HOME/${directory}"; ${clean}mkdir -p "$d/${TREE}" && touch "$d/used" && rm -f "$d/manifest" "$d/manifest.new" && tar -xpof - -C "$d" && mv "$d/manifest.new" "$d/manifest" && echo ${DONE}`
  const result = await request.ssh
    .run({ target: request.target, signal: request.signal, script, input: tar })
    .finally(() => tar.destroy())
  await filled
  assertDone(result, request)
}

const assertDone = (result: { stdout: Buffer; stderr: string; code: number }, request: PushRequest): void => {
  if (result.stdout.includes(DONE)) return
  const detail = result.stderr.trim().split('\n').at(-1) ?? ''
  throw new AppError(
    'unavailable',
    `Cannot copy the workspace to node ${request.target.id}: ${detail || `tar exited with ${result.code}`}`,
    {
      hint: `Check the free disk space: ssh ${request.target.host} df -h`,
    },
  )
}
