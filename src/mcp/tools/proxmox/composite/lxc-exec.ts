import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../row-context.ts'

export const lxcExec: Composite = async ({ node, vmid, command, timeout }, context) => {
  const { lxc, signal } = context
  return context.perform('POST /nodes/{node}/lxc/{vmid}/exec', { node, vmid, command }, async () => {
    if (!lxc) {
      throw new AppError(
        'unsupported',
        'Commands in containers need SSH to their node, which is not set up.',
        {
          hint: 'Set PROXMOX_SSH_ENABLED=true, PROXMOX_SSH_NODE and PROXMOX_SSH_KEY_PATH (and PROXMOX_SSH_HOST_KEY_FINGERPRINT).',
        },
      )
    }
    return lxc({
      node: String(node),
      vmid: Number(vmid),
      command: String(command),
      timeoutS: Number(timeout ?? 30),
      signal,
    })
  })
}
