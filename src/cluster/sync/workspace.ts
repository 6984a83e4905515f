import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/arguments.ts'
import type { Ssh } from '../ssh/session.ts'
import { treeDirectory } from './push.ts'
import { isPortable, TREE } from './tree.ts'

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
  request: WorkspaceRequest & { key: string | undefined },
): Promise<void> => {
  const work = `"$HOME/${workspaceDirectory(request.owner, request.id)}"`
  const tree =
    request.key === undefined ? undefined : `"$HOME/${treeDirectory(request.owner, request.key)}/${TREE}"`
  const copy =
    tree === undefined
      ? `mkdir -p ${work}`
      : `rm -rf ${work}; mkdir -p ${work} && { cp -a --reflink=auto ${tree}/. ${work}/ 2>/dev/null || cp -Rp ${tree}/. ${work}/; }`
  await expectDone(
    request,
    `umask 077; ${copy} && touch ${work}.stamp && { sleep 0.02 2>/dev/null || sleep 1; }`,
  )
}

/** Unpacks an archive into the workspace, over what is there. */
export const unpackInto = (request: WorkspaceRequest & { archive: AsyncIterable<unknown> }): Promise<void> =>
  expectDone(
    request,
    `umask 077; w="$HOME/${workspaceDirectory(request.owner, request.id)}"; mkdir -p "$w" && tar -xpof - -C "$w" && touch "$w.stamp"`,
    request.archive,
  )

export interface WorkspaceListing {
  files: { path: string; size: number }[]
  links: string[]
  /** Written since the workspace was filled. */
  changed: ReadonlySet<string>
}

export const listWorkspace = async (request: WorkspaceRequest): Promise<WorkspaceListing> => {
  const mark = `deputy-${randomBytes(9).toString('hex')}`
  const script = `w="$HOME/${workspaceDirectory(request.owner, request.id)}"
cd "$w" || exit 1
echo ${mark}
find . -type f -exec wc -c {} +
echo ${mark}
find . -type l
echo ${mark}
find . \\( -type f -o -type l \\) -cnewer "$w.stamp"
echo ${mark}
`
  const result = await request.ssh.run({ target: request.target, signal: request.signal, script })
  const [, files, links, changed, rest] = result.stdout.toString('utf8').split(`${mark}\n`)
  if (rest === undefined) throw broken(request, 'listed', result.stderr)
  return {
    files: lines(files).flatMap(line => {
      const match = /^\s*(\d+) \.\/(.+)$/.exec(line)
      return match && isPortable(match[2]!) ? [{ path: match[2]!, size: Number(match[1]) }] : []
    }),
    links: paths(links),
    changed: new Set(paths(changed)),
  }
}

/** An archive of some files, as a stream of bytes; ends in an error when the node does not deliver all of it. */
export async function* packFrom(
  request: WorkspaceRequest & { directory?: string; files: readonly string[] },
): AsyncGenerator<Buffer> {
  const mark = Buffer.from(`deputy-${randomBytes(9).toString('hex')}\n`)
  const directory = request.directory ?? workspaceDirectory(request.owner, request.id)
  const script = `cd "$HOME/${directory}" && printf '%s' '${mark.toString('latin1').trimEnd()}' && echo && tar -cf - -T -`
  const queue: Buffer[] = []
  let wake: (() => void) | undefined
  let ended = false
  let failure: unknown
  const session = request.ssh
    .run({
      target: request.target,
      signal: request.signal,
      script,
      input: Readable.from([request.files.map(file => `./${file}\n`).join('')]),
      onStdout: chunk => {
        queue.push(chunk)
        wake?.()
        // Hold the sender back while nobody reads.
        return queue.length < 16 ? undefined : new Promise<void>(resolve => drained.push(resolve))
      },
    })
    .catch((error: unknown) => {
      failure = error
    })
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

const broken = (request: WorkspaceRequest, what: string, stderr: string): AppError =>
  new AppError(
    'unavailable',
    `the workspace on node ${request.target.id} could not be ${what}: ${stderr.trim().split('\n').at(-1) || 'the connection ended'}`,
    {
      hint: `Is there room on its disk? Try: ssh ${request.target.host} df -h`,
    },
  )

const lines = (text: string | undefined): string[] => (text ?? '').split('\n').filter(Boolean)

const paths = (text: string | undefined): string[] =>
  lines(text)
    .map(line => line.replace(/^\.\//, ''))
    .filter(isPortable)
