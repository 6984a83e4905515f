import { downloadFile, listFiles } from '../composite/file-restore.ts'
import { downloadUrl, listTemplates, prune, upload } from '../composite/storage-actions.ts'
import { done, record, rows, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const CONTENT = 'volid content format size:gib used:gib vmid:int ctime:time protected:bool notes'
const USAGE =
  'storage type content active:bool enabled:bool shared:bool used:gib avail:gib total:gib used_fraction:pct'
const SHARED =
  'content server username password domain nodes shared disable prune-backups pool options fsname keyring monhost settings'
const FIXED = 'path export share vgname thinpool portal target datastore'

// biome-ignore format: it is a table
export const storage: Toolset = {
  name: 'proxmox-storage',
  about: 'Storage: definitions, usage, volumes, uploads, downloads, pruning, files out of backups.',
  tools: [
    tool('proxmox_storage_config', 'Storage definitions of the cluster and their usage.', {
      storage: p.storage, node: p.node, type: p.oneOf('dir|lvm|lvmthin|nfs|cifs|zfspool|btrfs|cephfs|rbd|iscsi|iscsidirect|zfs|pbs|esxi'),
      content: p.text('e.g. images,iso,backup'), path: p.text(), server: p.text(), export: p.text(), share: p.text(), username: p.text(),
      password: p.secret(), domain: p.text(),
      nodes: p.text('comma separated'), shared: p.bool(), disable: p.bool(), 'prune-backups': p.text(), pool: p.text(), vgname: p.text(),
      thinpool: p.text(),
      monhost: p.text(), fsname: p.text(undefined, { api: 'fs-name' }), keyring: p.secret(), portal: p.text(), target: p.text(),
      options: p.text('mount options'), datastore: p.text('PBS'),
      settings: p.spread('others, e.g. {"smbversion":"3.0","fingerprint":"…"}'), delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /storage', '', rows('storage type content path server export share pool vgname nodes shared:bool disable:bool')),
      get: read('GET /storage/{storage}', 'storage*', record()),
      cluster_usage: read('GET /nodes/{node}/storage', 'node*', rows(USAGE)),
      create: elevated('POST /storage', `storage* type* ${SHARED} ${FIXED}`, record('storage type')),
      update: elevated('PUT /storage/{storage}', `storage* ${SHARED} delete digest`, record('storage type')),
      delete: destructive('DELETE /storage/{storage}', 'storage*', done, { note: 'Removes the definition; the data stays.' }),
    }),

    tool('proxmox_storage_content', 'Volumes on a storage.', {
      node: p.node, storage: p.storage, content: p.text('iso, vztmpl, images, rootdir, backup, import, snippets', { pattern: /^[a-z]+$/ }),
      vmid: p.vmid, volume: p.volume,
      file: p.text('local file, in a directory allowed for uploads', { local: true }),
      filename: p.text('name on the storage', { pattern: /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/, maxLength: 255 }),
      url: p.text('http(s)', { pattern: /^https?:\/\/\S+$/ }), checksum: p.text(undefined, { pattern: /^[0-9A-Fa-f]+$/ }),
      'checksum-algorithm': p.oneOf('md5|sha1|sha224|sha256|sha384|sha512'), 'verify-certificates': p.bool(),
      'keep-last': p.int(0, 1e6), 'keep-hourly': p.int(0, 1e6), 'keep-daily': p.int(0, 1e6), 'keep-weekly': p.int(0, 1e6),
      'keep-monthly': p.int(0, 1e6), 'keep-yearly': p.int(0, 1e6),
      'prune-backups': p.text('instead of keep-*'), 'dry-run': p.bool('only say what would go'), type: p.oneOf('qemu|lxc'), notes: p.text(),
      protected: p.bool(), wait: p.wait, ...p.paging,
    }, {
      list: read('GET /nodes/{node}/storage/{storage}/content', `node* storage* content vmid ${p.PAGED}`, rows(CONTENT)),
      list_templates: read('GET /nodes/{node}/storage/{storage}/content', `node* storage* ${p.PAGED}`, rows(CONTENT),
        { preset: { content: 'vztmpl' }, run: listTemplates }),
      upload: elevated('POST /nodes/{node}/storage/{storage}/upload', 'node* storage* content* filename* file* checksum checksum-algorithm wait', task,
        { run: upload, note: 'content: iso, vztmpl or import. An existing file of that name is overwritten.' }),
      download_url: elevated('POST /nodes/{node}/storage/{storage}/download-url', 'node* storage* content* url* filename checksum checksum-algorithm verify-certificates wait', task,
        { run: downloadUrl, note: 'content: iso, vztmpl or import. The node downloads it.' }),
      update: elevated('PUT /nodes/{node}/storage/{storage}/content/{volume}', 'node* storage* volume* notes protected', done),
      delete: destructive('DELETE /nodes/{node}/storage/{storage}/content/{volume}', 'node* storage* volume* wait', task),
      prune: destructive('DELETE /nodes/{node}/storage/{storage}/prunebackups', 'node* storage* keep-last keep-hourly keep-daily keep-weekly keep-monthly keep-yearly prune-backups dry-run vmid type wait', task,
        { run: prune, note: 'With dry-run it only reads.' }),
    }),

    tool('proxmox_file_restore', 'Files inside backups on a Proxmox Backup Server.', {
      node: p.node, storage: p.storage, volume: p.volume, path: p.text('directory, default /'), filepath: p.text('file or directory'),
      tar: p.bool('directory as tar.zst, default zip'), ...p.paging,
    }, {
      list: read('GET /nodes/{node}/storage/{storage}/file-restore/list', `node* storage* volume* path ${p.PAGED}`, rows('text type leaf:bool size:mib mtime:time filepath'),
        { run: listFiles }),
      download: elevated('GET /nodes/{node}/storage/{storage}/file-restore/download', 'node* storage* volume* filepath* tar', record(),
        { run: downloadFile, note: 'Saved to a local file; the answer carries its path.' }),
    }),
  ],
}
