import type { Tier } from '../table/define-row.ts'
import type { Operation } from './api-operation.ts'

/**
 * What an operation may do to the cluster, from its method and path alone: the raw call and every tool are judged
 * by the same lines. Reading is free, writing is elevated, deleting is destructive; the table names the exceptions.
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
      // A name may hold a slash; it must not look like two segments here.
      pattern.test(operation.segments.map(segment => segment.replaceAll('/', ' ')).join('/')) &&
      (when?.(operation) ?? true),
  }
}

const isSet = (name: string) => (operation: Operation) => isTrue(operation.params[name])
const isTrue = (value: unknown) => ['1', 'true', 'yes', 'on'].includes(String(value).toLowerCase())
/** `delete=unused0` and `force` throw a volume away, which a mere change of settings must not do. */
const dropsVolume = (operation: Operation) =>
  isTrue(operation.params.force) ||
  /(^|[\s,;])unused\d/.test(String(operation.params.delete ?? operation.params.idlist ?? ''))

const EXCEPTIONS: readonly Exception[] = [
  // Questions that are asked with POST.
  rule('read', 'POST', 'nodes/*/qemu/*/agent/(ping|fsfreeze-status|info|get-[a-z-]+|network-get-interfaces)'),

  // Answers that carry what is inside guests and backups, or that can be had once only.
  rule('elevated', 'GET', 'nodes/*/qemu/*/agent/(file-read|exec-status)'),
  rule('elevated', 'GET', 'nodes/*/storage/*/file-restore/download'),
  rule('elevated', 'GET', '(nodes/*/|nodes/*/(qemu|lxc)/*/)(vncwebsocket|mtunnelwebsocket)'),

  // Deletions that only take back what was not done yet.
  rule('elevated', 'DELETE', 'nodes/*/tasks/*'),
  rule('elevated', 'DELETE', 'nodes/*/network'),
  rule('elevated', 'DELETE', 'cluster/sdn/lock'),

  // Power of a node, and of many guests at once.
  rule('destructive', 'POST', 'nodes/*/status'),
  rule('destructive', 'POST', 'nodes/*/(stopall|suspendall|migrateall)'),
  rule('destructive', 'POST', 'cluster/bulk-action/guest/(shutdown|suspend|migrate)'),
  rule('destructive', 'POST', 'nodes/*/ceph/stop'),

  // Disks that are formatted.
  rule('destructive', 'PUT', 'nodes/*/disks/wipedisk'),
  rule('destructive', 'POST', 'nodes/*/disks/(initgpt|directory|lvm|lvmthin|zfs)'),
  rule('destructive', 'POST', 'nodes/*/ceph/osd'),

  // State of guests that is thrown away.
  rule('destructive', 'POST', `${GUEST}/snapshot/*/rollback`),
  rule('destructive', 'POST', 'nodes/*/(qemu|lxc)', isSet('force')),
  rule('destructive', 'POST|PUT', `${GUEST}/(config|unlink)`, dropsVolume),
  rule('destructive', 'POST', `${GUEST}/remote_migrate`, isSet('delete')),

  // Whoever may do these may do anything.
  rule('destructive', 'POST', 'nodes/*/execute'),
  rule('destructive', 'POST', 'nodes/*/(vncshell|termproxy|spiceshell)'),
  rule('destructive', 'POST', 'nodes/*/qemu/*/monitor'),
  rule('destructive', 'POST', 'cluster/config/join'),
  rule('destructive', 'PUT', 'access/acl', isSet('delete')),
]
