import { createHash } from 'node:crypto'
import { check, may } from '../acl.ts'
import { badParams, die } from '../errors.ts'
import { type Context, NODE, type Operation } from '../operation.ts'
import { type Storage, storageOn, usedOn } from '../state.ts'
import { startTask } from '../tasks.ts'
import { drivesOf, dropVolume, putVolume, volumeOf } from '../vm.ts'

const STORAGE = { type: 'string', format: 'pve-storage-id' } as const
const AUDIT = ['Datastore.Audit', 'Datastore.AllocateSpace']
const EXTENSIONS: Readonly<Record<string, RegExp>> = {
  iso: /\.(iso|img)$/i,
  vztmpl: /\.tar\.(gz|xz|zst)$/i,
  import: /\.(ova|qcow2|raw|vmdk)$/i,
}

export const storageOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/storage',
    name: 'index',
    description: 'Lists the storages of a node with their use.',
    params: {
      node: NODE,
      content: { type: 'string', optional: true },
      enabled: { type: 'boolean', optional: true },
      storage: { type: 'string', optional: true },
      target: { type: 'string', optional: true },
      format: { type: 'boolean', optional: true },
    },
    permission: { user: 'all' },
    onNode: true,
    returns: 'array',
    run: ({ state, auth, params }) =>
      [...state.storages.values()]
        .filter(
          one => storageOn(one, String(params.node)) && may(state, auth, `/storage/${one.id}`, AUDIT, true),
        )
        .filter(
          one =>
            params.content === undefined ||
            String(params.content)
              .split(',')
              .some(type => one.content.includes(type)),
        )
        .filter(one => params.storage === undefined || one.id === params.storage)
        .map(one => describe(one, usedOn(state, one, String(params.node)))),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/status',
    name: 'read_status',
    description: 'Tells the use of a storage.',
    params: { node: NODE, storage: STORAGE },
    permission: { check: ['/storage/{storage}', AUDIT], any: true },
    onNode: true,
    returns: 'object',
    run: context =>
      describe(storageFor(context), usedOn(context.state, storageFor(context), String(context.params.node))),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content',
    name: 'index',
    description: 'Lists what a storage holds.',
    params: {
      node: NODE,
      storage: STORAGE,
      content: { type: 'string', optional: true },
      vmid: { type: 'integer', optional: true },
    },
    permission: { check: ['/storage/{storage}', AUDIT], any: true },
    onNode: true,
    returns: 'array',
    run: context => {
      const storage = storageFor(context)
      const { content, vmid, node } = context.params
      return [...context.state.volumes.values()]
        .filter(one => one.storage === storage.id && (storage.shared || one.node === node))
        .filter(
          one =>
            (content === undefined || one.content === content) && (vmid === undefined || one.vmid === vmid),
        )
        .map(({ volid, content: kind, size, ctime, vmid: owner }) => ({
          volid,
          content: kind,
          size,
          ctime,
          format: kind === 'iso' ? 'iso' : 'raw',
          ...(owner === undefined ? {} : { vmid: owner }),
        }))
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/storage/{storage}/upload',
    name: 'upload',
    description: 'Takes a file into a storage.',
    params: {
      node: NODE,
      storage: STORAGE,
      content: { type: 'string', enum: ['iso', 'vztmpl', 'import'] },
      filename: { type: 'string', maxLength: 255 },
      checksum: { type: 'string', optional: true },
      'checksum-algorithm': {
        type: 'string',
        optional: true,
        enum: ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512'],
      },
      tmpfilename: { type: 'string', optional: true },
    },
    permission: { check: ['/storage/{storage}', ['Datastore.AllocateTemplate']] },
    multipart: true,
    returns: 'string',
    run: context => upload(context),
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/storage/{storage}/content/{volume}',
    name: 'delete',
    description: 'Deletes a volume.',
    params: {
      node: NODE,
      storage: STORAGE,
      volume: { type: 'string' },
      delay: { type: 'integer', optional: true, minimum: 1, maximum: 30 },
    },
    permission: { user: 'all' },
    onNode: true,
    returns: 'string',
    run: context => {
      const { state, auth, params } = context
      const storage = storageFor(context)
      const name = String(params.volume)
      const volid = name.includes(':') ? name : `${storage.id}:${name}`
      const volume = volumeOf(state, volid, String(params.node))
      check(state, auth, `/storage/${storage.id}`, ['Datastore.Allocate'])
      return startTask(context, { node: String(params.node), type: 'imgdel', id: '', auth }, async task => {
        await task.step('delete', state.timing.taskMs)
        if (!volume) die(`volume '${volid}' does not exist`)
        const user = [...state.vms.values()].find(
          vm => vm.status === 'running' && drivesOf(vm.config).some(drive => drive.volid === volid),
        )
        // Proxmox VE deletes an image that is in a drive; the guest then cannot start again.
        if (user) task.log(`volume is attached to VM ${user.vmid}`)
        dropVolume(state, volid, String(params.node))
      })
    },
  },
]

const storageFor = ({ state, params }: Context): Storage => {
  const storage =
    state.storages.get(String(params.storage)) ?? die(`storage '${params.storage}' does not exist`)
  if (!storageOn(storage, String(params.node)))
    die(`storage '${storage.id}' is not available on node '${params.node}'`)
  return storage
}

const describe = (one: Storage, used: number) => ({
  storage: one.id,
  type: one.type,
  content: one.content.join(','),
  active: 1,
  enabled: 1,
  shared: Number(one.shared),
  total: one.total,
  used,
  avail: Math.max(0, one.total - used),
  used_fraction: used / one.total,
})

const upload = (context: Context): string => {
  const { state, auth, params, file } = context
  const storage = storageFor(context)
  const content = String(params.content)
  const name = String(params.filename)
    .replace(/^.*[/\\]/, '')
    .replace(/[^a-zA-Z0-9_.-]/g, '_')
  if (!['dir', 'nfs'].includes(storage.type))
    die(`cannot upload to storage type '${storage.type}', not a file based storage!`)
  if (!storage.content.includes(content)) die(`storage '${storage.id}' does not support '${content}' content`)
  if (!EXTENSIONS[content]!.test(name)) throw badParams({ filename: 'wrong file extension' })
  if (!file) throw badParams({ filename: 'missing temporary file - internal error' })
  const { checksum, 'checksum-algorithm': algorithm } = params
  if ((checksum === undefined) !== (algorithm === undefined))
    throw badParams({ checksum: 'missing checksum-algorithm' })
  return startTask(context, { node: String(params.node), type: 'imgcopy', id: '', auth }, async task => {
    await task.step('copy', state.timing.taskMs)
    if (
      checksum !== undefined &&
      createHash(String(algorithm)).update(file).digest('hex') !== String(checksum).toLowerCase()
    ) {
      die(`checksum mismatch: got something else than '${checksum}'`)
    }
    if (usedOn(state, storage, String(params.node)) + file.length > storage.total)
      die('import failed: No space left on device')
    const volid = `${storage.id}:${content}/${name}`
    const node = storage.shared ? undefined : String(params.node)
    putVolume(
      state,
      {
        volid,
        storage: storage.id,
        node,
        content,
        size: file.length,
        data: file,
        ctime: Math.floor(Date.now() / 1000),
      },
      String(params.node),
    )
  })
}
