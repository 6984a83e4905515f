import { buffer } from 'node:stream/consumers'
import { pack } from 'tar-stream'
import { WORKSPACE, WORKSPACE_ALIAS } from '../../jobs/paths.ts'
import type { EngineKind } from './container-engine.ts'
import type { EngineClient } from './engine-client.ts'

interface StorageRequest {
  /** Its name, for Docker. */
  readonly volume: string
  readonly volumesOfImage: readonly string[]
  /** Of a tmpfs. */
  readonly options: string
  readonly labels: Readonly<Record<string, string>>
}

/**
 * The workspace and the volumes of the image, all in memory: an engine would put a volume on its disk, without a limit.
 * The workspace has two names. Docker mounts one volume at both, because it cannot place a link in a container whose root
 * is read-only. Podman gets a link (`linkWorkspace`), because without root it cannot mount volumes in memory.
 */
export const workspaceStorage = (
  engine: EngineKind,
  { volume, volumesOfImage, options, labels }: StorageRequest,
): { Tmpfs: Record<string, string>; Mounts: unknown[] } => {
  const inMemory = (paths: readonly string[], more = ''): Record<string, string> =>
    Object.fromEntries(paths.map(path => [path, `exec,${more}${options}`]))
  // A volume of the image at the link is mounted on the workspace: as it is a tmpfs with the same limit, the order of
  // the two mounts does not matter. Podman would copy files of the image into each.
  if (engine === 'podman')
    return { Tmpfs: inMemory([...volumesOfImage, WORKSPACE], 'notmpcopyup,'), Mounts: [] }
  const names = [WORKSPACE, WORKSPACE_ALIAS]
  const DriverConfig = { Name: 'local', Options: { type: 'tmpfs', device: 'tmpfs', o: options } }
  const VolumeOptions = { NoCopy: true, Labels: labels, DriverConfig }
  return {
    Tmpfs: inMemory(volumesOfImage.filter(path => !names.includes(path))),
    Mounts: names.map(Target => ({ Type: 'volume', Source: volume, Target, VolumeOptions })),
  }
}

/**
 * Podman only. The container must not have been started. A directory of the image makes way for the link; one at the
 * workspace becomes writable, because runc gives its mode to what is mounted there.
 */
export const linkWorkspace = async (
  client: EngineClient,
  container: string,
  signal: AbortSignal,
): Promise<void> => {
  const tar = pack()
  tar.entry({ name: `${WORKSPACE.slice(1)}/`, type: 'directory', mode: 0o1777 })
  tar.entry({ name: WORKSPACE_ALIAS.slice(1), type: 'symlink', linkname: WORKSPACE.slice(1) })
  tar.finalize()
  const path = `/containers/${container}/archive`
  await client.json({ method: 'PUT', path, query: { path: '/' }, body: await buffer(tar), signal })
}
