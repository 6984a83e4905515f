import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/arguments.ts'
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

/** Unpacks an archive into the workspace, over what is there. */
export const unpackInto = (request: WorkspaceRequest & { archive: AsyncIterable<unknown> }): Promise<void> =>
  expectDone(
    request,
    `umask 077; w="$HOME/${workspaceDirectory(request.owner, request.id)}"; mkdir -p "$w" && tar -xpof - -C "$w" && touch "$w.stamp"`,
    request.archive,
  )

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
