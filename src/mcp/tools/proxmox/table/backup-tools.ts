import { createBackup, listBackups, restore } from '../composite/backup-actions.ts'
import { record, rows, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

// biome-ignore format: it is a table
export const backup: Toolset = {
  name: 'proxmox-backup',
  about: 'Backups of guests: create, list, restore, delete.',
  tools: [
    tool('proxmox_backup', 'Backups. Restoring over an existing guest (`force`) destroys what it holds.', {
      node: p.node, vmid: p.vmid, type: p.guestType, storage: p.name('default local'), mode: p.oneOf('snapshot|suspend|stop'),
      compress: p.oneOf('none|lzo|gzip|zstd', 'default zstd', { wire: { none: '0', lzo: 'lzo', gzip: 'gzip', zstd: 'zstd' } }),
      archive: p.volume, volume: p.volume, force: p.bool('overwrite the guest'), unique: p.bool('new MAC addresses'), start: p.bool(),
      'notes-template': p.text(), protected: p.bool(), wait: p.wait, ...p.paging,
    }, {
      create: elevated('POST /nodes/{node}/vzdump', 'vmid* node type storage mode compress notes-template protected wait', task, { run: createBackup }),
      list: read('GET /nodes/{node}/storage/{storage}/content', `node* storage vmid ${p.PAGED}`, rows('volid vmid:int ctime:time size:gib format protected:bool verification.state notes'),
        { preset: { content: 'backup', storage: 'local' }, run: listBackups }),
      restore: elevated('POST /nodes/{node}/qemu', 'type* node* vmid* archive* storage force unique start wait', task,
        { run: restore, worst: 'destructive', note: 'With force it overwrites the guest.' }),
      delete: destructive('DELETE /nodes/{node}/storage/{storage}/content/{volume}', 'node* storage* volume* wait', task),
      config: read('GET /nodes/{node}/vzdump/extractconfig', 'node* volume*', record('config', data => ({ config: data }))),
    }),
  ],
}
