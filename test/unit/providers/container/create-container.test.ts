import { expect, it } from 'vitest'
import { AppError } from '../../../../src/jobs/errors.ts'
import type { SpecRequest } from '../../../../src/providers/container/container-spec.ts'
import { createContainer } from '../../../../src/providers/container/create-container.ts'
import type { EngineClient } from '../../../../src/providers/container/engine-client.ts'

const spec: SpecRequest = {
  engine: 'docker',
  machineId: 'm1',
  owner: 'own',
  image: { name: 'node:22', id: 'sha256:1', platform: 'linux/amd64', user: '', volumes: [] },
  users: {},
  defaults: { cpu: 1, memory: 1, disk: 1, processes: 1 },
  network: 'none',
}

/** An engine with an earlier create request under way: it has the name, and shows the container a little later. */
const busyEngine = (owner: string): EngineClient => {
  let hidden = 3
  return {
    address: { url: 'unix:///s', source: 'test' },
    json: async ({ path }) => {
      if (path === '/containers/create') throw new AppError('conflict', 'The name is already in use.')
      if (path.endsWith('/start')) return undefined
      if (hidden-- > 0) throw new AppError('not_found', 'No such container.')
      const Labels = { 'deputy.owner': owner, 'deputy.machine': 'm1' }
      return { Id: 'c1', State: { Running: true, StartedAt: 'then' }, Config: { Labels } }
    },
    lines: () => Promise.reject(new Error('not used')),
    hijack: () => Promise.reject(new Error('not used')),
  }
}

it('adopts the container of an earlier request that the engine is still working on', async () => {
  const { signal } = new AbortController()
  expect(await createContainer(busyEngine('own'), spec, signal)).toEqual({ startedAt: 'then' })
  await expect(createContainer(busyEngine('other'), spec, signal)).rejects.toMatchObject({ code: 'conflict' })
})

it('waits for the answer to a create request when the job is cancelled, so that its container can be removed', async () => {
  const cancel = new AbortController()
  let isCreated = false
  const engine: EngineClient = {
    ...busyEngine('own'),
    json: async ({ signal }) => {
      cancel.abort(new Error('cancelled'))
      await new Promise(resolve => setImmediate(resolve))
      signal.throwIfAborted()
      isCreated = true
    },
  }
  await expect(createContainer(engine, spec, cancel.signal)).rejects.toThrow('cancelled')
  expect(isCreated).toBe(true)
})

it.each([
  ['docker', false, ['start']],
  ['podman', false, ['archive', 'start']],
  ['podman', true, ['start']],
] as const)(
  '%s: links /workspace before the start of a container (running: %s)',
  async (kind, running, expected) => {
    const asked: string[] = []
    const Labels = { 'deputy.owner': 'own', 'deputy.machine': 'm1' }
    const engine: EngineClient = {
      ...busyEngine('own'),
      json: async ({ path }) => {
        if (path === '/containers/create') throw new AppError('conflict', 'The name is already in use.')
        asked.push(path.split('/').at(-1) ?? '')
        return { Id: 'c1', State: { Running: running, StartedAt: 'then' }, Config: { Labels } }
      },
    }
    await createContainer(engine, { ...spec, engine: kind }, new AbortController().signal)
    expect(asked.filter(path => path !== 'json')).toEqual(expected)
  },
)
