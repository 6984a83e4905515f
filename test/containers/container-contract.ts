import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { RUNNER_HOME } from '../../src/providers/container/container-spec.ts'
import { describeProviderContract } from '../integration/providers/provider-contract.ts'
import {
  createEngine,
  type EngineName,
  importTools,
  missingForEngine,
  type TestEngine,
  TOOLS,
} from '../support/containers/engines.ts'
import { createRegistries, type Registries } from '../support/containers/registry.ts'
import { has } from '../support/has.ts'

interface Launched {
  readonly machine: { readonly id: string }
  readonly job: { readonly id: string }
}

/** The contract of all runtimes on an engine of the test's own. */
export const describeContainerContract = async (
  name: EngineName,
): Promise<{
  engine: TestEngine | undefined
  registries: Registries | undefined
  missing: string | undefined
}> => {
  const missing =
    missingForEngine(name) ?? (has('docker-registry') ? undefined : 'docker-registry is not installed')
  const registries = missing ? undefined : await createRegistries()
  const insecure = registries ? [registries.open.host, registries.closed.host] : []
  const engine = missing ? undefined : await createEngine(name, { more: ['--live-restore'], insecure })
  if (engine) await importTools(engine)
  afterAll(async () => {
    await engine?.close()
    await registries?.open.close()
    await registries?.closed.close()
  })

  const pidOf = ({ machine }: Launched): string => {
    const path = `http://x/v1.40/containers/deputy-${machine.id}/json`
    const socket = engine?.host.replace('unix://', '') ?? ''
    const found = execFileSync('curl', ['-s', '--unix-socket', socket, path], { encoding: 'utf8' })
    return String(JSON.parse(found).State.Pid)
  }
  const record = (launched: Launched, file: string): string => {
    const { machine, job } = launched
    const directory = join('/proc', pidOf(launched), 'root', RUNNER_HOME, '.cache/deputy/own/jobs')
    try {
      return readFileSync(join(directory, `${machine.id}.${job.id}`, file), 'utf8').trim()
    } catch {
      return ''
    }
  }

  describeProviderContract(`container (${name})`, {
    skip: missing,
    module: 'providers/container/container-provider.js',
    factory: 'createContainerProvider',
    options: { host: engine?.host, image: TOOLS, graceSeconds: 1 },
    orderGap: 0.4,
    disks: engine ? [engine.directory] : [],
    hasEnded: (_, launched) => record(launched, 'exit') !== '',
    killHolders: (_, launched) => {
      const [holder] = record(launched, 'supervisor').split(' ')
      const [command] = record(launched, 'command').split(' ')
      const kill = `kill -9 ${holder} ${command}; true`
      execFileSync('nsenter', ['-t', pidOf(launched), '-p', '-m', 'sh', '-c', kill])
    },
  })
  return { engine, registries, missing }
}
