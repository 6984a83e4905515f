import type { Composite } from '../row-context.ts'
import { text, without } from './values.ts'

export const createBackup: Composite = (args, { call }) =>
  call('POST /nodes/{node}/vzdump', {
    storage: 'local',
    mode: 'snapshot',
    compress: 'zstd',
    ...without(args, 'type'),
  })

export const listBackups: Composite = ({ node, storage, vmid }, { call }) =>
  call(
    'GET /nodes/{node}/storage/{storage}/content',
    without({ node, storage: storage ?? 'local', content: 'backup', vmid }),
  )

/** A VM is restored from `archive`, a container from `ostemplate`. */
export const restore: Composite = (args, { call }) => {
  const { type, archive, ...rest } = without(args)
  if (type === 'lxc') return call('POST /nodes/{node}/lxc', { ...rest, ostemplate: archive, restore: true })
  return call('POST /nodes/{node}/qemu', { ...rest, archive: text({ archive }, 'archive') })
}
