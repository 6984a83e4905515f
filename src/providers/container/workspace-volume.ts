import { MACHINE_LABEL, OWNER_LABEL } from './container-spec.ts'
import { field, text } from './engine-address.ts'
import { type EngineClient, inspectIfPresent } from './engine-client.ts'

interface WorkspaceVolume {
  readonly owner: string | undefined
  readonly machineId: string | undefined
}

/** Undefined when the engine has no such volume. */
export const inspectVolume = async (
  client: EngineClient,
  name: string,
  signal: AbortSignal,
): Promise<WorkspaceVolume | undefined> => {
  const found = await inspectIfPresent(client, `/volumes/${name}`, signal)
  return found === undefined ? undefined : volumeOf(found)
}

/** The machines that have a volume. One is left alone when the engine is killed while it creates a container. */
export const machinesWithVolume = async (
  client: EngineClient,
  owner: string,
  signal: AbortSignal,
): Promise<string[]> => {
  const filters = JSON.stringify({ label: [`${OWNER_LABEL}=${owner}`] })
  const found = field(await client.json({ path: '/volumes', query: { filters }, signal }), 'Volumes')
  return (Array.isArray(found) ? found : []).map(one => volumeOf(one).machineId ?? '').filter(id => id !== '')
}

const volumeOf = (found: unknown): WorkspaceVolume => {
  const labels = field(found, 'Labels')
  return { owner: text(labels, OWNER_LABEL), machineId: text(labels, MACHINE_LABEL) }
}
