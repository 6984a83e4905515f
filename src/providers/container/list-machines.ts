import type { FoundMachine, Machine } from '../../ports.ts'
import { inspectContainer } from './container-host.ts'
import { containerName, MACHINE_LABEL, OWNER_LABEL } from './container-spec.ts'
import { field, text } from './engine-address.ts'
import type { EngineClient } from './engine-client.ts'
import { detailsOf } from './machine-details.ts'
import { clientOf, type ProviderContext } from './provider-context.ts'
import { machinesWithVolume } from './workspace-volume.ts'

/** The machines that exist: those of the engine, and known ones that cannot be ruled out. */
export const listMachines = async (
  context: ProviderContext,
  known: readonly Machine[],
  signal: AbortSignal,
): Promise<FoundMachine[]> => {
  const { engines, owner } = context
  const current = engines.isConfigured() ? engines.current() : undefined
  const found = current && (await listContainers(current, owner, signal).catch(() => undefined))
  // The containers of an engine can be listed only while it is configured and answers.
  const isSeen = (machine: Machine): boolean =>
    found !== undefined && detailsOf(machine).engine === current?.address.url
  const unseen = known.filter(machine => !isSeen(machine))
  const states = await Promise.all(unseen.map(machine => mayExist(context, machine, signal)))
  signal.throwIfAborted()
  return [
    ...(found ?? []),
    ...unseen.filter((_, index) => states[index]).map(({ id, details }) => ({ id, details })),
  ]
}

/**
 * Those that the engine lists: a socket of the same path may belong to the engine of another computer. An address of a
 * network names the same engine everywhere, so a machine whose container does not exist there yet counts, too.
 */
export const reachableMachines = async (
  context: ProviderContext,
  machines: readonly Machine[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> => {
  if (!context.engines.isConfigured()) return new Set()
  const { url } = context.engines.current().address
  const isRemote = /^(tcp|ssh):/.test(url)
  const found = await listMachines(context, [], signal)
  const atRemote = machines.filter(machine => isRemote && detailsOf(machine).engine === url)
  return new Set([...found, ...atRemote].map(({ id }) => id))
}

const mayExist = async (
  context: ProviderContext,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> => {
  try {
    return (
      (await inspectContainer(clientOf(context, machine), containerName(machine.id), signal)) !== undefined
    )
  } catch {
    return true
  }
}

const listContainers = async (
  client: EngineClient,
  owner: string,
  signal: AbortSignal,
): Promise<FoundMachine[]> => {
  const filters = JSON.stringify({ label: [`${OWNER_LABEL}=${owner}`] })
  // Asked first, so that a volume whose container is being created does not look like a leftover.
  const withVolume = await machinesWithVolume(client, owner, signal)
  const found = await client.json({ path: '/containers/json', query: { all: '1', filters }, signal })
  const engine = client.address.url
  const machines = (Array.isArray(found) ? found : []).flatMap(one => foundMachine(one, engine))
  const ids = new Set(machines.map(({ id }) => id))
  const alone = withVolume.filter(id => !ids.has(id))
  const details = (id: string) => ({ engine, container: containerName(id) })
  return [...machines, ...alone.map(id => ({ id, details: details(id), leftover: true }))]
}

const foundMachine = (found: unknown, engine: string): FoundMachine[] => {
  const id = text(field(found, 'Labels'), MACHINE_LABEL)
  if (id === undefined) return []
  const created = field(found, 'Created')
  return [
    {
      id,
      details: { engine, container: containerName(id) },
      ...(typeof created === 'number' && { createdAt: created * 1000 }),
    },
  ]
}
