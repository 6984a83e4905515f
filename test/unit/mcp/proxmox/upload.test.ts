import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openCallSession } from '../../../../src/mcp/tools/proxmox/call-session.ts'
import { upload } from '../../../../src/mcp/tools/proxmox/composite/storage-actions.ts'
import type { RowContext } from '../../../../src/mcp/tools/proxmox/row-context.ts'
import { createFakeCluster } from '../../../support/proxmox/fake-cluster.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'

it("uploads nothing of Deputy's own, although it lies in a directory that uploads may come from", async () => {
  const { service, stateDir } = proxmoxTools(createFakeCluster(), {
    policy: { allowElevated: true, uploadDirs: [tmpdir()] },
  })
  writeFileSync(join(stateDir, 'token'), 'secret')
  const session: RowContext = openCallSession(service, {
    who: 'mcp:test',
    tool: 'proxmox_storage_upload',
    action: '',
    confirmation: { kind: 'token' },
    signal: new AbortController().signal,
  })
  const args = { node: 'pve1', storage: 'local', content: 'iso', filename: 'x.iso' }
  await expect(upload({ ...args, file: join(stateDir, 'token') }, session)).rejects.toMatchObject({
    code: 'denied',
    message: expect.stringContaining('is not allowed'),
  })
})
