import type { Injection } from './choose-injection.ts'
import {
  type GuestList,
  listBridges,
  listNodes,
  listStorages,
  type NodeOffer,
  type Template,
} from './cluster-guests.ts'
import { bridgeOf } from './net-device.ts'
import { isEverywhere, NoRoomError, type Placement, place } from './placement.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

/** Cached: only an administrator changes what a node offers. */
const OFFER_MS = 15_000
/** How long a machine waits for others to end. */
const ROOM_MS = 120_000
const PAUSE_MS = 3000

/** Chooses nodes for machines and counts the memory reserved on them. */
export const createNodeChoice = (
  { proxmox, network, seedStorage }: ProxmoxProviderOptions,
  guestList: GuestList,
) => {
  const { clock } = proxmox
  const promised = new Map<string, number>()
  const known = new Map<string, { readonly at: number; readonly offer: NodeOffer }>()

  const offerOf = async (node: string, signal: AbortSignal): Promise<NodeOffer> => {
    const present = known.get(node)
    if (present !== undefined && clock.now() - present.at < OFFER_MS) return present.offer
    const [storages, bridges] = await Promise.all([
      listStorages(proxmox, node, signal),
      listBridges(proxmox, node, signal),
    ])
    const offer = { storages, bridges }
    known.set(node, { at: clock.now(), offer })
    return offer
  }

  const look = async (template: Template, wanted: NodeNeeds, signal: AbortSignal): Promise<Placement> => {
    const [nodes, guests, home] = await Promise.all([
      listNodes(proxmox, signal),
      guestList.recent(signal),
      offerOf(template.node, signal),
    ])
    const offers = new Map([[template.node, home]])
    const others = nodes.filter(node => node.online && node.node !== template.node)
    if (isEverywhere({ template, offers }))
      await Promise.all(
        others.map(async ({ node }) => {
          const offer = await offerOf(node, signal).catch(() => undefined)
          if (offer) offers.set(node, offer)
        }),
      )
    const chosen = place({
      template,
      nodes,
      guests,
      offers,
      promised,
      memory: wanted.memory * 2 ** 20,
      seedStorage: wanted.injection === 'iso' ? seedStorage : undefined,
      bridge: network.bridge ?? bridgeOf(template.config),
    })
    count(chosen.node, wanted.memory)
    return chosen
  }

  const count = (node: string, memory: number): void => {
    promised.set(node, (promised.get(node) ?? 0) + memory * 2 ** 20)
  }

  return {
    /** The node for a machine, with its memory set aside there; waits a while for room. */
    async choose(template: Template, wanted: NodeNeeds, signal: AbortSignal): Promise<Placement> {
      const end = clock.now() + ROOM_MS
      for (;;) {
        try {
          return await look(template, wanted, signal)
        } catch (error) {
          if (!(error instanceof NoRoomError) || clock.now() >= end) throw error
          await clock.sleep(PAUSE_MS, signal)
        }
      }
    },
    /** Releases the reservation: the machine exists, or never will. */
    release: (node: string, { memory }: Pick<NodeNeeds, 'memory'>): void => count(node, -memory),
  }
}

export interface NodeNeeds {
  /** MiB */
  readonly memory: number
  readonly injection: Injection
}
