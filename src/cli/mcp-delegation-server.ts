#!/usr/bin/env node
import { runFormerServer } from './former-server.ts'

await runFormerServer({
  toolsets: 'default',
  dotenv: true,
  // Its jobs ran in VMs of the configured cluster, on a disk of this size.
  defaults: { DEFAULT_VM_TEMPLATE: 'agent-template', DEFAULT_DISK: '10G' },
})
