import { TREE } from '../../files/tree-source.ts'
import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/ssh-arguments.ts'
import type { Ssh } from '../ssh/ssh-session.ts'
import { treeDirectory } from './push-tree.ts'

interface WorkspaceRequest {
  ssh: Ssh
  owner: string
  target: SshTarget
  /** Id of the workspace. */
  id: string
  signal: AbortSignal
}

/** Relative to the home directory on the node. */
export const workspaceDirectory = (owner: string, id: string): string => `.cache/deputy/${owner}/work/${id}`

/** Copies a synchronised tree to the workspace of a command, with the times of its files: a patch compares them. */
export const fillWorkspace = async (request: WorkspaceRequest & { key: string }): Promise<void> => {
  const work = `"$HOME/${workspaceDirectory(request.owner, request.id)}"`
  const tree = `"$HOME/${treeDirectory(request.owner, request.key)}/${TREE}"`
  const copy = `{ cp -a --reflink=auto ${tree}/. ${work}/ 2>/dev/null || cp -Rp ${tree}/. ${work}/; }`
  await expectDone(request, `umask 077; touch ${tree}/../used; rm -rf ${work}; mkdir -p ${work} && ${copy}`)
}

/** Unpacks an archive into the workspace and overwrites existing files. */
export const unpackInto = (request: WorkspaceRequest & { archive: AsyncIterable<unknown> }): Promise<void> =>
  expectDone(
    request,
    `umask 077; w="$HOME/${workspaceDirectory(request.owner, request.id)}"; mkdir -p "$w" && tar -xpof - -C "$w"`,
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
  if (!result.stdout.includes(DONE)) throw fillFailed(request, result.stderr)
}

const fillFailed = (request: { target: SshTarget }, stderr: string): AppError =>
  new AppError(
    'unavailable',
    `Cannot fill the workspace on node ${request.target.id}: ${stderr.trim().split('\n').at(-1) || 'the connection was lost'}`,
    {
      hint: `Check the free disk space: ssh ${request.target.host} df -h`,
    },
  )
