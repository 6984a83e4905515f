import { createTarget, updateTarget } from '../composite/notification-target.ts'
import { done, record, rows } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const TARGET =
  'comment disable server port username password mode token mailto mailto-user from author url method header body secret'
const MATCHER = 'target match-severity match-field match-calendar mode invert-match comment disable'
const name = p.name()

// biome-ignore format: it is a table
export const notify: Toolset = {
  name: 'proxmox-notify',
  about: 'Notifications: targets (smtp, gotify, sendmail, webhook) and matchers that route to them.',
  tools: [
    tool('proxmox_notification', 'Notification targets.', {
      target_type: p.oneOf('smtp|gotify|sendmail|webhook'), name, comment: p.comment, disable: p.bool(), server: p.text('smtp host or gotify URL'),
      port: p.int(1, 65_535), username: p.text(), password: p.secret(), mode: p.oneOf('insecure|starttls|tls'),
      token: p.secret('gotify'), mailto: p.strings('addresses'), 'mailto-user': p.strings('user@realm'),
      from: p.text('sender; required for smtp', { api: 'from-address' }), author: p.text(),
      url: p.text('webhook'), method: p.oneOf('post|put|get', 'webhook'), header: p.strings('name=…,value=base64'), body: p.text('base64'),
      secret: p.strings('name=…,value=base64', { secret: true }), delete: p.strings('settings to unset'), digest: p.digest,
    }, {
      list: read('GET /cluster/notifications/targets', '', rows('name type origin disable:bool comment')),
      get: read('GET /cluster/notifications/endpoints/{target_type}/{name}', 'target_type* name*', record()),
      create: elevated('POST /cluster/notifications/endpoints/{target_type}', `target_type* name* ${TARGET}`, done, { run: createTarget }),
      update: elevated('PUT /cluster/notifications/endpoints/{target_type}/{name}', `target_type* name* ${TARGET} delete digest`, done, { run: updateTarget }),
      delete: destructive('DELETE /cluster/notifications/endpoints/{target_type}/{name}', 'target_type* name*', done),
      test: elevated('POST /cluster/notifications/targets/{name}/test', 'name*', done),
    }),

    tool('proxmox_notification_matcher', 'Rules that decide which notification goes where.', {
      name, target: p.strings('target names'), 'match-severity': p.strings('info, notice, warning, error, unknown'),
      'match-field': p.strings('exact:type=vzdump, regex:hostname=^pve'), 'match-calendar': p.strings('e.g. mon..fri 8-17'),
      mode: p.oneOf('all|any'), 'invert-match': p.bool(), comment: p.comment, disable: p.bool(), delete: p.strings('settings to unset'),
      digest: p.digest,
    }, {
      list: read('GET /cluster/notifications/matchers', '', rows('name target match-severity match-field match-calendar mode invert-match:bool disable:bool origin comment')),
      get: read('GET /cluster/notifications/matchers/{name}', 'name*', record()),
      create: elevated('POST /cluster/notifications/matchers', `name* ${MATCHER}`, done),
      update: elevated('PUT /cluster/notifications/matchers/{name}', `name* ${MATCHER} delete digest`, done),
      delete: destructive('DELETE /cluster/notifications/matchers/{name}', 'name*', done),
    }),
  ],
}
