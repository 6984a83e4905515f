import { acl, createGroup, createUser, updateGroup, updateUser } from '../composite/access-actions.ts'
import { done, record, rows } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const group = p.text(undefined, { pattern: /^[A-Za-z0-9._-]+$/ })
const realm = p.text(undefined, { pattern: /^[A-Za-z][A-Za-z0-9._-]+$/, maxLength: 32 })
const path = p.text('e.g. /vms/100', { pattern: /^\/([A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*)?$/ })
const expire = p.int(0, 4_102_444_800, 'epoch seconds, 0 = never')
const USER = 'comment email firstname lastname groups expire enable'
const DOMAIN =
  'comment default server1 server2 port mode secure verify base_dn user_attr bind_dn bind_password group_filter filter capath sslversion domain issuer-url client-id client-key autocreate username-claim'

// biome-ignore format: it is a table
export const access: Toolset = {
  name: 'proxmox-access',
  about: 'Access: users, groups, roles, permissions, realms, API tokens, resource pools.',
  tools: [
    tool('proxmox_user', 'Users.', {
      userid: p.userid, password: p.secret(undefined, { maxLength: 64 }), comment: p.text(undefined, { maxLength: 2048 }), email: p.text(),
      firstname: p.text(), lastname: p.text(), groups: p.text('comma separated'),
      append: p.bool('add to groups'), expire, enable: p.bool(), ...p.paging,
    }, {
      list: read('GET /access/users', p.PAGED, rows('userid enable:bool expire:time email firstname lastname groups realm-type comment')),
      get: read('GET /access/users/{userid}', 'userid*', record()),
      create: elevated('POST /access/users', `userid* password ${USER}`, done, { run: createUser }),
      update: elevated('PUT /access/users/{userid}', `userid* password append ${USER}`, done,
        { run: updateUser, note: 'A password is set by a request of its own, which Proxmox refuses to API tokens.' }),
      delete: destructive('DELETE /access/users/{userid}', 'userid*', done),
    }),

    tool('proxmox_group', 'Groups. Members belong to the user: `users` adds them.', { groupid: group, comment: p.comment, users: p.text('user@realm, comma separated'), append: p.bool('default true') }, {
      list: read('GET /access/groups', '', rows('groupid users comment')),
      get: read('GET /access/groups/{groupid}', 'groupid*', record()),
      create: elevated('POST /access/groups', 'groupid* comment users', done, { run: createGroup }),
      update: elevated('PUT /access/groups/{groupid}', 'groupid* comment users append', done, { run: updateGroup }),
      delete: destructive('DELETE /access/groups/{groupid}', 'groupid*', done),
    }),

    tool('proxmox_role', 'Roles: named sets of privileges.', { roleid: group, privs: p.text('comma separated'), append: p.bool('add to the present ones') }, {
      list: read('GET /access/roles', '', rows('roleid special:bool privs')),
      get: read('GET /access/roles/{roleid}', 'roleid*', record()),
      create: elevated('POST /access/roles', 'roleid* privs*', done),
      update: elevated('PUT /access/roles/{roleid}', 'roleid* privs append', done),
      delete: destructive('DELETE /access/roles/{roleid}', 'roleid*', done),
    }),

    tool('proxmox_acl', 'Permissions: who has which role where. A token needs its own entry.', {
      path, userid: p.text('only this user, group or token', { local: true }), groupid: p.text(undefined, { local: true }),
      roleid: p.text(undefined, { local: true }), roles: p.text('comma separated'), users: p.text(), groups: p.text(),
      tokens: p.text('user@realm!token'),
      propagate: p.bool(), delete: p.bool('take away'), ...p.paging,
    }, {
      get: read('GET /access/acl', `path userid groupid roleid ${p.PAGED}`, rows('path type ugid roleid propagate:bool'), { run: acl }),
      update: elevated('PUT /access/acl', 'path* roles* users groups tokens propagate delete', done,
        { worst: 'destructive', note: '`delete` takes rights away and needs confirmation.' }),
    }),

    tool('proxmox_domain', 'Realms users log in with.', {
      realm, type: p.oneOf('pam|pve|ldap|ad|openid'), comment: p.comment, default: p.bool(), server1: p.text(), server2: p.text(),
      port: p.int(1, 65_535), mode: p.oneOf('ldap|ldaps|ldap+starttls'), secure: p.bool('same as mode ldaps'), verify: p.bool('certificate'),
      base_dn: p.text(), user_attr: p.text(), bind_dn: p.text(), bind_password: p.secret(undefined, { api: 'password' }), group_filter: p.text(),
      filter: p.text('users'), capath: p.text(), sslversion: p.oneOf('tlsv1|tlsv1_1|tlsv1_2|tlsv1_3'), domain: p.text('ad'),
      'issuer-url': p.text('openid'), 'client-id': p.text(), 'client-key': p.secret(), autocreate: p.bool(), 'username-claim': p.text(),
      delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /access/domains', '', rows('realm type default:bool tfa comment')),
      get: read('GET /access/domains/{realm}', 'realm*', record()),
      create: elevated('POST /access/domains', `realm* type* ${DOMAIN}`, done),
      update: elevated('PUT /access/domains/{realm}', `realm* ${DOMAIN.replace(' username-claim', '')} delete digest`, done),
      delete: destructive('DELETE /access/domains/{realm}', 'realm*', done),
    }),

    tool('proxmox_user_token', 'API tokens. A new secret goes to a file, never into the answer.', {
      userid: p.userid, tokenid: p.tokenid, comment: p.comment, expire, privsep: p.bool('own permissions, default true'),
    }, {
      list: read('GET /access/users/{userid}/token', 'userid*', rows('tokenid privsep:bool expire:time comment')),
      get: read('GET /access/users/{userid}/token/{tokenid}', 'userid* tokenid*', record('privsep:bool expire:time comment')),
      create: elevated('POST /access/users/{userid}/token/{tokenid}', 'userid* tokenid* comment expire privsep', record()),
      update: elevated('PUT /access/users/{userid}/token/{tokenid}', 'userid* tokenid* comment expire privsep', record()),
      delete: destructive('DELETE /access/users/{userid}/token/{tokenid}', 'userid* tokenid*', done),
    }),

    tool('proxmox_pool', 'Resource pools.', {
      poolid: p.text(undefined, { pattern: /^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+){0,2}$/ }), comment: p.comment,
      vms: p.text('VMIDs, comma separated', { pattern: /^\d{3,9}([,; ]\d{3,9})*$/ }), storage: p.text('comma separated'),
      delete: p.bool('take members out'), 'allow-move': p.bool('from another pool'), type: p.oneOf('qemu|lxc|storage'),
    }, {
      list: read('GET /pools', '', rows('poolid comment')),
      get: read('GET /pools', 'poolid* type', rows('poolid comment members')),
      create: elevated('POST /pools', 'poolid* comment', done),
      update: elevated('PUT /pools', 'poolid* comment vms storage delete allow-move', done),
      delete: destructive('DELETE /pools', 'poolid*', done),
    }),
  ],
}
