import { existsSync, mkdirSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packDirectory } from '../../../src/files/pack-directory.ts'
import { tarSource } from '../../../src/files/tree-source.ts'
import type { Cluster } from '../../../src/nodes/cluster.ts'
import type { Ssh } from '../../../src/nodes/ssh/ssh-session.ts'
import { fillWorkspace } from '../../../src/nodes/sync/node-workspace.ts'
import { pushTree } from '../../../src/nodes/sync/push-tree.ts'
import { listFiles } from '../../../src/runner/file-list.ts'
import { readFiles } from '../../../src/runner/read-files.ts'
import { channelTo, labCluster, runOn } from '../../support/labcluster.ts'
import { BSD_TOOLS } from '../../support/local-runner.ts'
import { createSshLab, missingForSshLab, type SshLab } from '../../support/sshlab.ts'

const missing = missingForSshLab()

describe.skipIf(missing !== undefined)('a node with the tools of a BSD and no /proc, as a Mac', () => {
  let lab: SshLab
  let cluster: Cluster & { dispose(): void }
  const { signal } = new AbortController()
  beforeAll(async () => {
    lab = await createSshLab({ nodes: 1 })
    const tools = join(lab.directory, 'bsd')
    mkdirSync(tools)
    const all = { ...BSD_TOOLS, ...(existsSync('/usr/bin/bsdtar') && { tar: 'exec /usr/bin/bsdtar "$@"' }) }
    for (const [name, body] of Object.entries(all))
      writeFileSync(join(tools, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
    const real = labCluster(lab)
    const run: Ssh['run'] = request => {
      const script = request.script.replaceAll('/proc/', '/nowhere/')
      return real.ssh.run({ ...request, script: `PATH=${tools}:$PATH; export PATH; ${script}` })
    }
    cluster = { ...real, ssh: { ...real.ssh, run } }
  })
  afterAll(async () => {
    cluster?.dispose()
    await lab?.close()
  })

  it('runs a command in a workspace that is filled, listed and read', async () => {
    const id = 'bsd'
    const target = await cluster.target(cluster.find('n1'), signal)
    const where = { ssh: cluster.ssh, owner: 'test', target, signal, id }
    const source = mkdtempSync(join(lab.directory, 'src'))
    writeFileSync(join(source, 'a b.txt'), 'one\n')
    writeFileSync(join(source, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
    symlinkSync('a b.txt', join(source, 'link'))
    await pushTree({ ...where, key: 'k', source: tarSource(() => packDirectory(source)) })
    await fillWorkspace({ ...where, key: 'k' })
    const ran = await runOn(cluster, 'n1', {
      id,
      command: "echo two >> 'a b.txt'; echo out; echo err >&2; exit 7",
    })
    expect(ran).toMatchObject({ end: { kind: 'exit', code: 7 }, stdout: 'out\n', stderr: 'err\n' })
    const channel = await channelTo(cluster, 'n1')
    const { files } = await listFiles({ channel, workspace: id, signal })
    expect([...files].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'a b.txt', type: 'file', size: 8, mode: 0o644, modified: expect.any(Number) },
      { path: 'link', type: 'link', size: 7, mode: expect.any(Number), modified: expect.any(Number) },
      {
        path: 'run.sh',
        type: 'file',
        size: 10,
        mode: 0o755,
        modified: Math.floor(statSync(join(source, 'run.sh')).mtimeMs / 1000),
      },
    ])
    const read: string[] = []
    const paths = ['a b.txt', 'run.sh']
    await readFiles({ channel, workspace: id, paths, limit: 1e6, signal }, async ({ path, size }) => {
      read.push(`${path} ${size}`)
    })
    expect(read).toEqual(['a b.txt 8', 'run.sh 10'])
  })
})
