import { expect, it } from 'vitest'
import { newId } from '../../src/jobs/ids.ts'
import { exitOf } from '../integration/providers/provider-contract.ts'
import { type TestEngine, TOOLS } from '../support/containers/engines.ts'
import { createHarness } from '../support/providers.ts'

/** An image of the tools after a command, which also declares volumes. */
const commitImage = async (engine: TestEngine, name: string, command: string, volumes: string[]) => {
  const Cmd = ['sh', '-c', command]
  const made = await engine.api('POST', '/v1.40/containers/create', { Image: TOOLS, Cmd })
  const { Id } = JSON.parse(made.text) as { Id: string }
  await engine.api('POST', `/v1.40/containers/${Id}/start`)
  await engine.api('POST', `/v1.40/containers/${Id}/wait`)
  const changes = volumes.map(path => `&changes=${encodeURIComponent(`VOLUME ${path}`)}`).join('')
  const repo = `localhost/deputy-test/${name}`
  const committed = await engine.api('POST', `/v1.40/commit?container=${Id}&repo=${repo}&tag=1${changes}`, {})
  expect(committed.status, committed.text).toBe(201)
  await engine.api('DELETE', `/v1.40/containers/${Id}?force=1`)
  return `${repo}:1`
}

interface Volume {
  readonly Name: string
  readonly Options: Readonly<Record<string, string>> | null
}

const volumesOf = async (engine: TestEngine): Promise<Volume[]> => {
  const { text } = await engine.api('GET', '/v1.40/volumes')
  return (JSON.parse(text) as { Volumes: Volume[] | null }).Volumes ?? []
}

const open = ({ host }: TestEngine) =>
  createHarness({
    module: 'providers/container/container-provider.js',
    factory: 'createContainerProvider',
    options: { host, image: TOOLS },
  })

const BOTH_NAMES = [
  'pwd; cat given; cat /workspace/given; echo one >/workspace/a; cat a; echo two >b; cat /workspace/b',
  'printf "#!/bin/sh\\necho runs\\n" >/workspace/program; chmod +x program; ./program',
  'dd if=/dev/zero of=/workspace/big bs=1M count=64 2>&1 | grep -o "No space left"',
  'rm /work/big; find /work /workspace/ -name "old*"',
].join('\n')

export const describeVolumes = (engine: TestEngine | undefined, missing: string | undefined): void => {
  it.skipIf(missing !== undefined)(
    'a volume of an image is in memory, with the limit of --disk',
    async () => {
      const image = await commitImage(engine!, 'volumes', 'true', ['/srv/data/'])
      const harness = await open(engine!)
      const task =
        'grep -o " /srv/data tmpfs" /proc/mounts; dd if=/dev/zero of=/srv/data/big bs=1M count=64 2>&1 | grep -o "No space left"; wc -c </srv/data/big'
      const launched = await harness.launch({ task, image, resources: { disk: '16M' } })
      expect(exitOf(await launched.outcome).code, launched.sink.text()).toBe(0)
      expect(launched.sink.text()).toMatch(/^ \/srv\/data tmpfs\nNo space left\n16777216\n$/)
      // Docker has one for the workspace, in memory.
      const own = `deputy-${launched.machine.id}`
      for (const { Name, Options } of await volumesOf(engine!))
        expect([Name, Options?.type]).toEqual([own, 'tmpfs'])
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(60_000))
      expect(await volumesOf(engine!)).toEqual([])
      await harness.dispose()
    },
  )

  it.skipIf(missing !== undefined).each([
    ['nothing there', 'true', []],
    ['a directory there', 'mkdir /workspace; echo image >/workspace/old', []],
    ['a link there', 'ln -s work /workspace', []],
    ['a volume there', 'mkdir /workspace; echo image >/workspace/old', ['/workspace']],
    ['volumes at both names', 'mkdir /work /workspace; echo image >/work/old2', ['/work', '/workspace']],
  ])('/workspace is the workspace in an image with %s, with one limit for both names', async (...args) => {
    const [, command, volumes] = args
    const image = await commitImage(engine!, `workspace-${newId()}`, command, volumes)
    const harness = await open(engine!)
    const { outcome, sink } = await harness.run({
      task: BOTH_NAMES,
      image,
      files: [{ path: '/workspace/given', text: 'given\n' }],
      artifacts: ['/workspace/a', 'b'],
      resources: { disk: '16M' },
    })
    expect(sink.text(), JSON.stringify(outcome)).toBe('/work\ngiven\ngiven\none\ntwo\nruns\nNo space left\n')
    expect(exitOf(outcome).artifacts.map(({ path }) => path)).toEqual(['a', 'b'])
    expect(await volumesOf(engine!)).toEqual([])
    await harness.dispose()
  })

  it.skipIf(missing !== undefined)(
    'a volume without a container is found and removed, unless it belongs to somebody else',
    async () => {
      const harness = await open(engine!)
      const create = async (owner: string) => {
        const id = newId()
        const Labels = { 'deputy.owner': owner, 'deputy.machine': id }
        const body = { Name: `deputy-${id}`, Labels }
        expect((await engine!.api('POST', '/v1.40/volumes/create', body)).status).toBe(201)
        return { id, runtime: 'container', jobId: null, details: { engine: engine!.host } }
      }
      const [own, other] = [await create('own'), await create('other')]
      const signal = AbortSignal.timeout(60_000)
      const listed = await harness.provider.list(signal)
      expect(listed).toEqual([expect.objectContaining({ id: own.id, leftover: true })])
      await harness.provider.destroy(own, signal)
      expect((await volumesOf(engine!)).map(({ Name }) => Name)).toEqual([`deputy-${other.id}`])
      await expect(harness.provider.destroy(other, signal)).rejects.toMatchObject({ code: 'conflict' })
      await engine!.api('DELETE', `/v1.40/volumes/deputy-${other.id}`)
      await harness.dispose()
    },
  )
}
