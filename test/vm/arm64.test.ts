import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stopRun } from '../../src/runner/client.ts'
import { findArm64, forgetArm64 } from '../support/arm64.ts'
import { channelTo, labCluster, runOn } from '../support/labcluster.ts'
import {
  createSshLab,
  missingForNamespaces,
  missingForSshLab,
  type SshLab,
  waitFor,
} from '../support/sshlab.ts'

const { root, missing } = findArm64()
const reason = missing ?? missingForSshLab() ?? missingForNamespaces()

/** Everything after the login, from the first shell on, is a program for arm64; proc is of the node's own processes. */
const enter = `mountpoint -q ${root}/proc || mount -t proc proc ${root}/proc; HOME=/root exec chroot ${root} /bin/sh -c "$SSH_ORIGINAL_COMMAND"`

describe.skipIf(reason !== undefined)(
  `a node with another processor${reason ? ` (skipped: ${reason})` : ''}`,
  () => {
    let lab: SshLab
    let cluster: ReturnType<typeof labCluster>
    const { signal } = new AbortController()

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 1, config: [`ForceCommand ${enter}`], mode: 'namespaces' })
      cluster = labCluster(lab, { ssh: { connectTimeout: 20 }, timeouts: { status: 60 } })
    })
    afterAll(async () => {
      cluster?.dispose()
      await lab?.close()
      forgetArm64()
    })

    it('is known for what it is, and chosen by any name of its processor', async () => {
      const { report } = await cluster.probe(cluster.find('n1'), signal)
      expect(report).toMatchObject({ os: 'linux', arch: 'arm64' })
      expect(report.cores).toBeGreaterThan(0)
      expect(report.memoryTotalMb).toBeGreaterThan(0)
      expect(report.tools).toEqual(expect.arrayContaining(['bash', 'tar']))
      for (const arch of ['arm64', 'aarch64']) {
        const place = await cluster.choose({ requires: { arch } }, signal)
        place.release()
      }
      await expect(cluster.choose({ requires: { arch: 'amd64' } }, signal)).rejects.toThrow(/arm64/)
    })

    it('runs commands and tells how they end', async () => {
      for (const id of ['one', 'two', 'three']) {
        const { end, stdout, stderr } = await runOn(cluster, 'n1', {
          id,
          command: 'uname -m; echo "$DEPUTY_JOB" >&2; exit 7',
        })
        expect({ stdout, stderr }).toEqual({ stdout: 'aarch64\n', stderr: `${id}\n` })
        expect(end).toMatchObject({ kind: 'exit', code: 7, how: 'exit' })
      }
    })

    it('ends a whole tree of processes', async () => {
      let printed = ''
      const running = runOn(
        cluster,
        'n1',
        { id: 'tree', command: '(setsid sleep 300 &); sleep 300 & echo ready; wait' },
        {
          onOutput: text => {
            printed += text
          },
        },
      )
      await waitFor(() => printed.includes('ready'))
      const channel = await channelTo(cluster, 'n1')
      expect(await stopRun(channel, { run: 'tree', signal, graceSeconds: 2 })).toEqual([])
      expect((await running).end).toMatchObject({ kind: 'exit', how: 'stop' })
      expect(lab.nodes[0]!.inside('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).not.toContain('sleep 300')
    })
  },
)
