import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FAULT_POINTS } from '../../../src/engine/engine-context.ts'
import { newHome, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { createSshLab, missingForSshLab, type SshLab } from '../../support/sshlab.ts'

const missing = missingForSshLab()

describe.skipIf(missing !== undefined)(
  `kill -9 of the daemon of a job on a node${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    const start = useDaemons()
    let lab: SshLab
    beforeAll(async () => {
      lab = await createSshLab({ nodes: 1, mode: 'loopback' })
    })
    afterAll(() => lab?.close())

    const homeWithNode = (): string => {
      const directory = newHome()
      const nodes = lab.nodes.map(({ id, address, port }) => ({
        ...{ id, host: address, port, user: lab.user, identity: lab.identity },
      }))
      const thresholds = { cpu: 100, memory: 100, load: 1000 }
      mkdirSync(join(directory, 'config'))
      writeFileSync(
        join(directory, 'config/config.yaml'),
        JSON.stringify({ cluster: { nodes, thresholds, ssh: { configFile: 'none' } } }),
      )
      return directory
    }

    it.each(FAULT_POINTS)('at the step "%s" loses no job, and runs nothing twice', async point => {
      const directory = homeWithNode()
      const manifest = {
        task: 'echo begun; sleep 0.5; echo ran >> "$HOME/$KEY"; cp "$HOME/$KEY" out.txt; echo done',
        ...{ runtime: 'node', network: 'full', artifacts: ['out.txt'], env: { KEY: `runs-${point}` } },
        idempotency_key: 'once',
      }
      const victim = await start({ directory, env: { DEPUTY_FAULT_POINT: point } })
      // The answer may not arrive: then the same submit is repeated, as a careful client does.
      await victim.client.submit(manifest).catch(() => undefined)
      expect(await victim.ended()).toBe('SIGKILL')

      const { client } = await start({ directory })
      const { job_id } = await client.submit(manifest)
      const view = await client.wait(job_id, { timeoutMs: 60_000, signal: AbortSignal.timeout(70_000) })
      expect(view).toMatchObject({ status: 'success', exit_code: 0 })
      const { output, artifacts } = await client.result(job_id)
      expect(output).toBe('begun\ndone\n')
      expect(artifacts).toMatchObject([{ path: 'out.txt', size: 'ran\n'.length }])
      await until(async () => (await client.machines()).length === 0, 'no machine is recorded', 20_000)
    })
  },
)
