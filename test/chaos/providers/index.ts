import { container, podman } from './container.ts'
import { host, sandbox } from './local.ts'
import type { Provider } from './provider.ts'
import { proxmox } from './proxmox.ts'
import { ssh } from './ssh.ts'

export const PROVIDERS: readonly Provider[] = [sandbox, host, container, podman, ssh, proxmox]
