/**
 * The order in which `auto` tries the providers. `host` has no isolation and must be named. VMs come first only where
 * the user has configured a template for jobs: a token for the Proxmox tools does not mean that jobs should run there.
 */
export const SANDBOX_FIRST: readonly string[] = ['sandbox', 'container', 'microvm', 'ssh', 'proxmox']
export const VM_FIRST: readonly string[] = ['proxmox', ...SANDBOX_FIRST.filter(name => name !== 'proxmox')]
