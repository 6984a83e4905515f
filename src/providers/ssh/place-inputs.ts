import { createHash } from 'node:crypto'
import { filesTar } from '../../files/pack-files.ts'
import { tarSource } from '../../files/tree-source.ts'
import { WORKSPACE_LABEL } from '../../jobs/labels.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import type { SshTarget } from '../../nodes/ssh/ssh-arguments.ts'
import { fillWorkspace, unpackInto } from '../../nodes/sync/node-workspace.ts'
import { pushTree } from '../../nodes/sync/push-tree.ts'
import type { Blobs } from '../../ports.ts'

export interface InputsRequest {
  cluster: Cluster
  target: SshTarget
  blobs: Blobs
  manifest: Manifest
  workspaceId: string
  signal: AbortSignal
  /** One at a time for each copy on a node. */
  serialize<T>(key: string, work: () => Promise<T>): Promise<T>
}

/** Puts the workspace and the files of a manifest on the node. */
export const placeInputs = async (request: InputsRequest): Promise<void> => {
  const { cluster, target, manifest, signal } = request
  const where = { ssh: cluster.ssh, owner: cluster.owner, target, signal, id: request.workspaceId }
  const blob = manifest.workspace?.blob
  const key = blob === undefined ? undefined : treeKey(manifest.labels?.[WORKSPACE_LABEL] ?? blob)
  if (blob !== undefined && key !== undefined) {
    await request.serialize(`${target.id} ${key}`, async () => {
      const source = tarSource(() => request.blobs.read(blob))
      await pushTree({ ...where, key, source })
      await fillWorkspace({ ...where, key })
    })
  }
  const files = manifest.files ?? []
  if (files.length > 0) await unpackInto({ ...where, archive: filesTar(files, 'workspace') })
}

const treeKey = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 32)
