import type { Composite } from '../row-context.ts'
import { items, text } from './values.ts'

/** Lists pending updates. No API installs packages, because apt may ask questions on a terminal. */
export const aptUpgrade: Composite = async ({ node }, { call }) => {
  const pending = items(await call('GET /nodes/{node}/apt/update', { node }))
  return {
    upgraded: false,
    why: 'Proxmox VE has no API call that installs packages.',
    how: `On ${String(node)}, as root: apt-get dist-upgrade (in the web interface: Updates, Upgrade). Refresh the list first with action update.`,
    pending: pending.length,
    packages: pending
      .slice(0, 60)
      .map(one => `${text(one, 'Package')} ${text(one, 'OldVersion') ?? ''} → ${text(one, 'Version')}`),
  }
}

export const aptVersions: Composite = async ({ node, package: name }, { call }) => {
  const all = items(await call('GET /nodes/{node}/apt/versions', { node }))
  return name === undefined ? all : all.filter(one => text(one, 'Package') === name)
}
