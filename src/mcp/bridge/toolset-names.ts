/** @public All toolsets there can be. The bridge knows them by name only, because it loads no tools. */
export const TOOLSET_NAMES: readonly string[] = [
  ...['default', 'all', 'jobs', 'cluster', 'proxmox', 'proxmox-all', 'proxmox-access', 'proxmox-admin'],
  ...[
    'proxmox-agent',
    'proxmox-backup',
    'proxmox-ceph',
    'proxmox-certs',
    'proxmox-cluster',
    'proxmox-console',
  ],
  ...['proxmox-firewall', 'proxmox-guests', 'proxmox-ha', 'proxmox-nodes', 'proxmox-notify', 'proxmox-sdn'],
  ...['proxmox-storage'],
]

/** A sentence about the first unknown name, or undefined. */
export const unknownToolset = (list: string): string | undefined => {
  const wrong = list
    .split(',')
    .map(name => name.trim())
    .find(name => name !== '' && !TOOLSET_NAMES.includes(name))
  if (wrong === undefined) return undefined
  return `No toolset '${wrong}'. Known: ${TOOLSET_NAMES.join(', ')}.`
}
