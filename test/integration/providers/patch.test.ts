import { afterAll } from 'vitest'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { createSshLab, missingForSshLab } from '../../support/sshlab.ts'
import { describeWorkspacePatches } from './patch-contract.ts'

const noLab = missingForSshLab()
const lab = noLab ? undefined : await createSshLab({ nodes: 1 })
afterAll(() => lab?.close())

const cluster = {
  nodes: (lab?.nodes ?? []).map(({ id, address, port }) => ({
    id,
    host: address,
    port,
    user: lab?.user,
    identity: lab?.identity,
  })),
  ssh: { configFile: 'none' },
}
const onNodes = (routed: boolean) => ({
  skip: noLab,
  subject: {
    module: 'providers/ssh/ssh-provider.js',
    factory: 'openSshProvider',
    options: { cluster, routed },
  },
})

describeWorkspacePatches('sandbox', SANDBOXES.find(variant => variant.skip === undefined)!)
describeWorkspacePatches('ssh', onNodes(false))
describeWorkspacePatches('node', { ...onNodes(true), network: 'full' })
