import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/arguments.ts'
import { failureError } from '../ssh/errors.ts'
import type { Ssh } from '../ssh/session.ts'
import { treeDirectory } from './push.ts'
import { TREE } from './tree.ts'

export interface WorkspaceRequest {
  ssh: Ssh
  owner: string
  target: SshTarget
  /** Of the workspace. */
  id: string
  signal: AbortSignal
}

/** Relative to the home there. */
export const workspaceDirectory = (owner: string, id: string): string => `.cache/deputy/${owner}/work/${id}`

/** Gives a command a copy of its own of a synchronised tree, and notes the moment: what changes later was its doing. */
export const fillWorkspace = async (
  request: WorkspaceRequest & { key: string | undefined; keepBase?: boolean },
): Promise<void> => {
  const work = `"$HOME/${workspaceDirectory(request.owner, request.id)}"`
  const tree =
    request.key === undefined ? undefined : `"$HOME/${treeDirectory(request.owner, request.key)}/${TREE}"`
  const copyTo = (place: string): string =>
    `rm -rf ${place}; mkdir -p ${place} && { cp -a --reflink=auto ${tree}/. ${place}/ 2>/dev/null || cp -Rp ${tree}/. ${place}/; }`
  const base = request.keepBase && tree !== undefined ? `${copyTo(`${work}.base`)} && ` : ''
  const copy = tree === undefined ? `mkdir -p ${work}` : `touch ${tree}/../used; ${base}${copyTo(work)}`
  await expectDone(
    request,
    `umask 077; ${copy} && touch ${work}.stamp && { sleep 0.02 2>/dev/null || sleep 1; }`,
  )
}

/** What the workspace began as, when it was asked to be kept. */
export const baseDirectory = (owner: string, id: string): string => `${workspaceDirectory(owner, id)}.base`

/** Unpacks an archive into the workspace, over what is there. */
export const unpackInto = (request: WorkspaceRequest & { archive: AsyncIterable<unknown> }): Promise<void> =>
  expectDone(
    request,
    `umask 077; w="$HOME/${workspaceDirectory(request.owner, request.id)}"; mkdir -p "$w" && tar -xpof - -C "$w" && touch "$w.stamp"`,
    request.archive,
  )

export interface WorkspaceFile {
  path: string
  type: 'file' | 'link' | 'other'
  size: number
  mode: number
}

export interface WorkspaceListing {
  files: WorkspaceFile[]
  /** Set when there are more. */
  truncated: boolean
  /** How many have names that are no UTF-8: they cannot be shown or asked for, and stay behind. */
  unnamed: number
  /** Written since the workspace was filled. */
  changed: ReadonlySet<string>
}

const MAX_FILES = 200_000
const MAX_LISTING = 128 * 1024 * 1024

/** Everything but directories. GNU's find tells all at once for every name; other systems lose names with newlines. */
export const listWorkspace = async (request: WorkspaceRequest): Promise<WorkspaceListing> => {
  const mark = `deputy-${randomBytes(9).toString('hex')}`
  const script = `w="$HOME/${workspaceDirectory(request.owner, request.id)}"
cd "$w" || exit 1
echo ${mark}
if find . -maxdepth 0 -printf '' 2>/dev/null; then
find . -xdev ! -type d -printf '%y %s %m %P\\0'
else
find . -xdev -type f -exec stat -f 'f %z %Lp %N' {} + | tr '\\n' '\\0'
find . -xdev -type l -exec stat -f 'l %z %Lp %N' {} + | tr '\\n' '\\0'
find . -xdev ! -type f ! -type l ! -type d -exec stat -f 'o %z %Lp %N' {} + | tr '\\n' '\\0'
fi
echo ${mark}
[ -e "$w.stamp" ] && find . -xdev \\( -type f -o -type l \\) -cnewer "$w.stamp" -print0
echo ${mark}
`
  const { target, signal } = request
  const result = await request.ssh.run({ target, signal, script, maxStdout: MAX_LISTING })
  const [, files, changed, rest] = result.stdout.toString('latin1').split(`${mark}\n`)
  if (rest === undefined) throw broken(request, 'listed', result.stderr)
  const listed = records(files)
  return {
    files: listed.names.slice(0, MAX_FILES).flatMap(parseFile),
    truncated: listed.names.length > MAX_FILES,
    unnamed: listed.unnamed,
    changed: pathsOf(changed),
  }
}

/** What a workspace began as. */
export interface BaseListing {
  files: ReadonlySet<string>
  links: ReadonlySet<string>
}

/** Of the copy that was kept of it. */
export const listBase = async (request: {
  ssh: Ssh
  target: SshTarget
  signal: AbortSignal
  owner: string
  id: string
}): Promise<BaseListing> => {
  const mark = `deputy-${randomBytes(9).toString('hex')}`
  const script = `cd "$HOME/${baseDirectory(request.owner, request.id)}" || exit 1
echo ${mark}
find . -xdev -type f -print0
echo ${mark}
find . -xdev -type l -print0
echo ${mark}
`
  const { target, signal } = request
  const result = await request.ssh.run({ target, signal, script, maxStdout: MAX_LISTING })
  const [, files, links, rest] = result.stdout.toString('latin1').split(`${mark}\n`)
  if (rest === undefined) throw broken(request, 'listed', result.stderr)
  return { files: pathsOf(files), links: pathsOf(links) }
}

const pathsOf = (latin1: string | undefined): Set<string> => new Set(records(latin1).names.map(stripDot))

const parseFile = (record: string): WorkspaceFile[] => {
  const match = /^(\S) (\d{1,15}) ([0-7]{1,5}) ([\s\S]+)$/.exec(record)
  const path = match && stripDot(match[4]!)
  if (!match || !path || !isInside(path)) return []
  const type = match[1] === 'f' ? 'file' : match[1] === 'l' ? 'link' : 'other'
  return [{ path, type, size: Number(match[2]), mode: Number.parseInt(match[3]!, 8) }]
}

const isInside = (path: string): boolean =>
  path.length < 4096 && path.split('/').every(part => part !== '' && part !== '.' && part !== '..')

const stripDot = (path: string): string => path.replace(/^\.\//, '')

const utf8 = new TextDecoder('utf-8', { fatal: true })

const records = (latin1: string | undefined): { names: string[]; unnamed: number } => {
  const all = (latin1 ?? '').split('\0').filter(record => record !== '')
  const names = all.flatMap(record => {
    try {
      return [utf8.decode(Buffer.from(record, 'latin1'))]
    } catch {
      return []
    }
  })
  return { names, unnamed: all.length - names.length }
}

/** An archive of some files, as a stream of bytes; ends in an error when the node does not deliver all of it. */
export async function* packFrom(
  request: WorkspaceRequest & { directory?: string; files: readonly string[] },
): AsyncGenerator<Buffer> {
  const mark = Buffer.from(`deputy-${randomBytes(9).toString('hex')}\n`)
  const directory = request.directory ?? workspaceDirectory(request.owner, request.id)
  const script = `cd "$HOME/${directory}" && printf '%s' '${mark.toString('latin1').trimEnd()}' && echo && if tar --version 2>/dev/null | grep -q GNU; then tar --null -T - --no-recursion --hard-dereference -cf - 2>/dev/null; else tar --null -T - -n -cf - 2>/dev/null; fi`
  const queue: Buffer[] = []
  let wake: (() => void) | undefined
  let ended = false
  let failure: unknown
  const session = request.ssh
    .run({
      target: request.target,
      signal: request.signal,
      script,
      input: Readable.from([request.files.map(file => `./${file}\0`).join('')]),
      onStdout: chunk => {
        queue.push(chunk)
        wake?.()
        // Hold the sender back while nobody reads.
        return queue.length < 16 ? undefined : new Promise<void>(resolve => drained.push(resolve))
      },
    })
    .then(
      // What tar has to say against a file is seen by what is missing; a cut must not be taken for the end.
      ({ code }) => {
        if (code === 255) failure = failureError(request.target, 'lost')
      },
      (error: unknown) => {
        failure = error
      },
    )
    .finally(() => {
      ended = true
      wake?.()
    })
  const drained: (() => void)[] = []
  let head: Buffer | undefined = Buffer.alloc(0)
  for (;;) {
    const chunk = queue.shift()
    if (chunk === undefined) {
      if (ended) break
      for (const resume of drained.splice(0)) resume()
      await new Promise<void>(resolve => {
        wake = resolve
      })
      continue
    }
    if (head === undefined) {
      yield chunk
      continue
    }
    head = Buffer.concat([head, chunk])
    const at = head.indexOf(mark)
    if (at < 0) continue
    const rest = head.subarray(at + mark.length)
    head = undefined
    if (rest.length > 0) yield rest
  }
  await session
  if (failure !== undefined) throw failure
  if (head !== undefined) throw broken(request, 'read', '')
}

const DONE = 'deputy-done'

const expectDone = async (
  request: WorkspaceRequest,
  script: string,
  input?: AsyncIterable<unknown>,
): Promise<void> => {
  const { target, signal } = request
  const done = `${script} && echo ${DONE}`
  const result = await request.ssh.run({
    target,
    signal,
    script: input ? done : `${done}\n`,
    ...(input && { input }),
  })
  if (!result.stdout.includes(DONE)) throw broken(request, 'filled', result.stderr)
}

const broken = (request: { target: SshTarget }, what: string, stderr: string): AppError =>
  new AppError(
    'unavailable',
    `the workspace on node ${request.target.id} could not be ${what}: ${stderr.trim().split('\n').at(-1) || 'the connection ended'}`,
    {
      hint: `Is there room on its disk? Try: ssh ${request.target.host} df -h`,
    },
  )
