import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../../src/client/daemon-client.ts'
import { resolveHome } from '../../../src/config/home.ts'
import { createTestCli, noProvider } from '../../support/cli.ts'
import { requireOrSkip } from '../../support/require.ts'

const missing = requireOrSkip(await noProvider())
const cli = createTestCli()
let client: Client

beforeAll(async () => {
  await cli.run(['daemon', 'start'])
  client = connect(resolveHome(cli.env))
})
afterAll(async () => {
  client.close()
  await cli.close()
})

const finished = async (manifest: Record<string, unknown>): Promise<string> => {
  const { job_id } = await client.submit(manifest)
  await client.wait(job_id, { timeoutMs: 30_000, signal: AbortSignal.timeout(40_000) })
  return job_id
}

const collect = async (bytes: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

describe.skipIf(missing)('the client and the real daemon', () => {
  it('agree on raw output, pages and events', async () => {
    const id = await finished({ task: "printf 'a\\377b'; exit 3" })
    expect(await collect((await client.rawOutput(id)).bytes)).toBe('a\xffb')
    const page = await client.output(id, { cursor: 1, signal: AbortSignal.timeout(30_000) })
    expect(page).toMatchObject({ done: true, next_cursor: 3, status: 'failed' })
    const events = await client.events(id)
    expect(events.map(event => event.type)).toEqual(expect.arrayContaining(['submitted', 'state']))
    expect(events.every(event => event.jobId === id && event.at > 0)).toBe(true)
  })

  it('agree on artifacts with awkward names', async () => {
    const name = 'out/a b#c?d%20ü.txt'
    const id = await finished({ task: `mkdir out; echo hello > '${name}'`, artifacts: ['out/*'] })
    expect((await client.artifacts(id)).map(file => file.path)).toEqual([name])
    const { size, bytes } = await client.openArtifact(id, name)
    expect(size).toBe(6)
    expect(await collect(bytes)).toBe('hello\n')
    await expect(client.openArtifact(id, 'out/none')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('agree on uploads, settings and refusals', async () => {
    const source = async function* () {
      yield Buffer.from('not ')
      yield Buffer.from('a tar')
    }
    expect(await client.putBlob(source())).toMatchObject({
      size: 9,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(await client.config()).toEqual(
      expect.arrayContaining([expect.objectContaining({ path: 'http.port' })]),
    )
    await expect(client.submit({ task: '' })).rejects.toMatchObject({ code: 'invalid' })
    await expect(client.openPatch(await finished({ task: 'true' }))).rejects.toMatchObject({
      code: 'not_found',
    })
    await expect(client.destroyMachine('01a1dd95-0000-7000-8000-000000000000')).rejects.toMatchObject({
      code: 'not_found',
    })
  })
})
