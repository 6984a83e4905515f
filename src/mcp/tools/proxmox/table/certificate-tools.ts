import { acmeConfig } from '../composite/acme-config.ts'
import { done, record, rows, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const { node, wait } = p

// biome-ignore format: it is a table
export const certs: Toolset = {
  name: 'proxmox-certs',
  about: 'Certificates of nodes and ACME.',
  tools: [
    tool('proxmox_certificate', 'Certificates of a node.', { node, certificates: p.text('PEM chain', { maxLength: 200_000 }), key: p.secret('PEM private key', { maxLength: 50_000 }), force: p.bool('replace'), restart: p.bool('restart pveproxy') }, {
      list: read('GET /nodes/{node}/certificates/info', 'node*', rows('filename subject issuer san notbefore:time notafter:time fingerprint')),
      upload: elevated('POST /nodes/{node}/certificates/custom', 'node* certificates* key force restart', record('filename subject notafter:time fingerprint')),
      delete: destructive('DELETE /nodes/{node}/certificates/custom', 'node* restart', done),
    }),

    tool('proxmox_acme_cert', 'ACME certificate of a node.', { node, force: p.bool(), wait }, {
      order: elevated('POST /nodes/{node}/certificates/acme/certificate', 'node* force wait', task),
      renew: elevated('PUT /nodes/{node}/certificates/acme/certificate', 'node* force wait', task),
      revoke: destructive('DELETE /nodes/{node}/certificates/acme/certificate', 'node* wait', task),
      config: read('GET /nodes/{node}/config', 'node*', record(), { run: acmeConfig }),
    }),

    tool('proxmox_acme_account', 'ACME accounts. Proxmox lets only root@pam with a password change them.', { name: p.name('default default'), contact: p.text('e-mail'), tos_url: p.text('terms agreed to'), directory: p.text('ACME URL', { pattern: /^https:\/\/\S+$/ }), wait }, {
      list: read('GET /cluster/acme/account', '', rows('name')),
      get: read('GET /cluster/acme/account/{name}', 'name*', record('directory location tos account.contact account.status')),
      create: elevated('POST /cluster/acme/account', 'contact* name tos_url directory wait', task),
      update: elevated('PUT /cluster/acme/account/{name}', 'name* contact wait', task),
      delete: destructive('DELETE /cluster/acme/account/{name}', 'name* wait', task),
    }),

    tool('proxmox_acme_info', 'ACME plugins and directories.', { id: p.name('plugin'), type: p.oneOf('dns|standalone') }, {
      list_plugins: read('GET /cluster/acme/plugins', 'type', rows('plugin type api nodes disable:bool')),
      get_plugin: read('GET /cluster/acme/plugins/{id}', 'id*', record('plugin type api nodes validation-delay:int disable:bool')),
      directories: read('GET /cluster/acme/directories', '', rows('name url')),
    }),
  ],
}
