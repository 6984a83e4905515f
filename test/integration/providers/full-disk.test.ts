import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { markStarted } from '../../../src/providers/local/job-state-files.ts'
import { createSshProvider } from '../../../src/providers/ssh/ssh-provider.ts'
import { labCluster } from '../../support/labcluster.ts'
import { createHarness, type Harness } from '../../support/providers.ts'
import { removeDirectory } from '../../support/remove-directory.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { createSshLab, missingForSshLab } from '../../support/sshlab.ts'
import { exitOf, waitFor } from './provider-contract.ts'

const { subject } = SANDBOXES.find(variant => variant.skip === undefined)!

describe.skipIf(process.getuid?.() !== 0)(
  'a full disk under the state of the daemon (needs root to mount one)',
  () => {
    let disk: string
    let harness: Harness
    const before = process.env.TMPDIR
    beforeAll(async () => {
      disk = mkdtempSync(join(tmpdir(), 'deputy-small-'))
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
      process.env.TMPDIR = disk
      harness = await createHarness(subject)
    })
    afterAll(async () => {
      await harness.dispose()
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
      // Shims on their way out still stand in it.
      execFileSync('umount', ['-l', disk])
      removeDirectory(disk)
    })

    const fill = () => {
      const { bavail, bsize } = statfsSync(disk)
      writeFileSync(join(disk, 'ballast'), Buffer.alloc(bavail * bsize))
    }

    it.skipIf(missingForSshLab() !== undefined)('delays the artifacts of a job on a node', async () => {
      const lab = await createSshLab({ nodes: 1, mode: 'loopback' })
      const cluster = labCluster(lab)
      const refused: unknown[] = []
      const remote = await createHarness((stateDir, blobs) =>
        createSshProvider({
          cluster,
          routed: true,
          keyFile: join(stateDir, 'memo.key'),
          blobs: {
            ...blobs,
            put: (...given) =>
              blobs.put(...given).catch(error => {
                refused.push(error)
                throw error
              }),
          },
        }),
      )
      const launched = await remote.launch({
        task: 'head -c 100000 /dev/zero >made; echo on; while [ ! -e "$HOME/go" ]; do sleep 0.05; done',
        network: 'full',
        artifacts: ['made'],
      })
      await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
      fill()
      lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/go`)
      await waitFor(() => refused.length > 1, 'the artifact was asked for again')
      expect(refused[0]).toMatchObject({ code: 'ENOSPC' })
      rmSync(join(disk, 'ballast'))
      expect(exitOf(await launched.outcome)).toMatchObject({
        code: 0,
        artifacts: [{ path: 'made', size: 100_000 }],
        skippedArtifacts: [],
      })
      await remote.dispose()
      cluster.dispose()
      await lab.close()
    })

    it('costs output, but the exit status is still reported', async () => {
      const launched = await harness.launch({ task: 'echo on; sleep 1; seq 1 100000; exit 5' })
      await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
      fill()
      expect(exitOf(await launched.outcome).code).toBe(5)
      rmSync(join(disk, 'ballast'))
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(30_000))
    })

    it('keeps the result of a job that ends while no daemon runs', async () => {
      const launched = await harness.launch({ task: 'echo on; sleep 1; exit 6' })
      await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
      fill()
      launched.detach()
      await launched.outcome
      const dir = join(harness.stateDir, 'sandbox/runs', launched.machine.id, launched.job.id)
      // It tries to write, and cannot.
      await waitFor(() => existsSync(join(dir, 'exit.json.tmp')), 'the job has ended')
      await harness.restart()
      expect(existsSync(join(dir, 'exit.json'))).toBe(false)
      expect(exitOf(await harness.reattach(launched, launched.sink.position).outcome).code).toBe(6)
      rmSync(join(disk, 'ballast'))
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(30_000))
    })

    it('leaves no start marker behind that could not be written', async () => {
      const dir = mkdtempSync(join(disk, 'job-'))
      fill()
      await expect(markStarted(dir)).rejects.toMatchObject({ code: 'ENOSPC' })
      rmSync(join(disk, 'ballast'))
      expect(await markStarted(dir)).toBeTypeOf('number')
    })

    it('lets no job start, with a retryable error', async () => {
      await harness.run({ task: 'true' })
      fill()
      const launched = await harness.launch({ task: 'echo never' }).catch((error: unknown) => error)
      if (launched instanceof Error) expect(launched.message).toContain('ENOSPC')
      else if (typeof launched === 'object' && launched !== null && 'outcome' in launched) {
        const outcome = await (launched as { outcome: Promise<unknown> }).outcome
        expect(outcome).toMatchObject({
          kind: 'not-started',
          error: { code: 'unavailable', retryable: true },
        })
      }
      rmSync(join(disk, 'ballast'))
      const { outcome, sink } = await harness.run({ task: 'echo again' })
      expect(exitOf(outcome).code).toBe(0)
      expect(sink.text()).toBe('again\n')
    })
  },
)
