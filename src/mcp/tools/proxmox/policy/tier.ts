import type { Tier } from '../table/define-row.ts'
import type { Operation } from './api-operation.ts'

/**
 * Derives the tier from method, path and parameters only, so that the raw call and all tools follow the same rules.
 * GET is `read`, POST and PUT are `elevated`, DELETE is `destructive`; EXCEPTIONS lists the others.
 */
export const tierOf = (operation: Operation): Tier => {
  const exception = EXCEPTIONS.find(entry => entry.matches(operation))
  if (exception) return exception.tier
  if (operation.method === 'GET') return 'read'
  return operation.method === 'DELETE' ? 'destructive' : 'elevated'
}

interface Exception {
  readonly tier: Tier
  matches(operation: Operation): boolean
}

const GUEST = 'nodes/*/(qemu|lxc)/*'

const rule = (
  tier: Tier,
  method: string,
  path: string,
  when?: (operation: Operation) => boolean,
): Exception => {
  const pattern = new RegExp(`^${path.replaceAll('*', '[^/]+')}$`)
  const methods = method.split('|')
  return {
    tier,
    matches: operation =>
      methods.includes(operation.method) &&
      // A segment may contain a slash, which must not look like a separator.
      pattern.test(operation.segments.map(segment => segment.replaceAll('/', ' ')).join('/')) &&
      (when?.(operation) ?? true),
  }
}

const isSet = (name: string) => (operation: Operation) => isTrue(operation.params[name])
const isTrue = (value: unknown) => ['1', 'true', 'yes', 'on'].includes(String(value).toLowerCase())
/** `delete=unused0` and `force` delete a volume, which is more than a change of settings. */
const dropsVolume = (operation: Operation) =>
  isTrue(operation.params.force) ||
  /(^|[\s,;])unused\d/.test(String(operation.params.delete ?? operation.params.idlist ?? ''))

const EXCEPTIONS: readonly Exception[] = [
  // Reads that use POST.
  rule('read', 'POST', 'nodes/*/qemu/*/agent/(ping|fsfreeze-status|info|get-[a-z-]+|network-get-interfaces)'),

  // Responses with the content of guests or backups, or that can be read only once.
  rule('elevated', 'GET', 'nodes/*/qemu/*/agent/(file-read|exec-status)'),
  rule('elevated', 'GET', 'nodes/*/storage/*/file-restore/download'),
  rule('elevated', 'GET', '(nodes/*/|nodes/*/(qemu|lxc)/*/)(vncwebsocket|mtunnelwebsocket)'),

  // Deletions that only cancel pending work.
  rule('elevated', 'DELETE', 'nodes/*/tasks/*'),
  rule('elevated', 'DELETE', 'nodes/*/network'),
  rule('elevated', 'DELETE', 'cluster/sdn/lock'),

  // Power of a node, and of many guests at once.
  rule('destructive', 'POST', 'nodes/*/status'),
  rule('destructive', 'POST', 'nodes/*/(stopall|suspendall|migrateall)'),
  rule('destructive', 'POST', 'cluster/bulk-action/guest/(shutdown|suspend|migrate)'),
  rule('destructive', 'POST', 'nodes/*/ceph/stop'),

  // Formats disks.
  rule('destructive', 'PUT', 'nodes/*/disks/wipedisk'),
  rule('destructive', 'POST', 'nodes/*/disks/(initgpt|directory|lvm|lvmthin|zfs)'),
  rule('destructive', 'POST', 'nodes/*/ceph/osd'),

  // Discards the state of guests.
  rule('destructive', 'POST', `${GUEST}/snapshot/*/rollback`),
  rule('destructive', 'POST', 'nodes/*/(qemu|lxc)', isSet('force')),
  rule('destructive', 'POST|PUT', `${GUEST}/(config|unlink)`, dropsVolume),
  rule('destructive', 'POST', `${GUEST}/remote_migrate`, isSet('delete')),

  // Each of these gives full control of a node, a guest or the cluster.
  rule('destructive', 'POST', 'nodes/*/execute'),
  rule('destructive', 'POST', 'nodes/*/(vncshell|termproxy|spiceshell)'),
  rule('destructive', 'POST', 'nodes/*/qemu/*/monitor'),
  rule('destructive', 'POST', 'cluster/config/join'),
  rule('destructive', 'PUT', 'access/acl', isSet('delete')),
]
