import { expect, it } from 'vitest'
import { AppError } from '../../../../src/jobs/errors.ts'
import { containerHost } from '../../../../src/providers/container/container-host.ts'
import type { EngineClient } from '../../../../src/providers/container/engine-client.ts'

const { signal } = new AbortController()

/** An engine whose container runs when it is first looked at, and is then found like this. */
const engineThen = (later: { Running: boolean; ExitCode: number } | undefined): EngineClient => {
  let looked = 0
  const refused = new AppError('conflict', 'The container engine refused /containers: c1 is not running.')
  return {
    address: { url: 'unix:///s', source: 'test' },
    json: async ({ path }) => {
      if (!path.endsWith('/c1/json')) throw refused
      const State = looked++ === 0 ? { Running: true } : later
      if (State === undefined) throw new AppError('not_found', 'No such container.')
      return { Id: 'c1', State }
    },
    lines: () => Promise.reject(new Error('not used')),
    hijack: () => Promise.reject(refused),
  }
}

it.each([
  [{ Running: false, ExitCode: 127 }, "The image 'acme/tool' has no shell"],
  [{ Running: false, ExitCode: 137 }, 'has ended (status 137)'],
  [undefined, 'The container c1 is gone'],
  [{ Running: true, ExitCode: 0 }, 'c1 is not running'],
])('says why a container ended that ends while it is connected to: %o', async (later, message) => {
  const host = containerHost({
    client: engineThen(later),
    name: 'c1',
    machineId: 'm1',
    owner: 'own',
    image: 'acme/tool',
    isFresh: true,
  })
  const channel = await host.connect(signal)
  const { cut, sent } = await channel.exchange([], { onAnswer: () => {}, signal })
  expect(cut?.message).toContain(message)
  expect(sent).toBe(false)
})
