import { describe, expect, it } from 'vitest'
import { createSecrets } from '../../../src/config/resolve-secrets.ts'
import type { SecretRule } from '../../../src/config/schema.ts'
import { begin } from '../../support/begin-engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

/** An engine whose configuration has the secret KEY under this rule. */
const start = async (rule: Omit<SecretRule, 'from'> = {}, directory?: string) => {
  const secrets = { KEY: { from: 'env:KEY', ...rule } }
  const providers = ['sandbox', 'other'].map(name => createScriptedProvider(name))
  const engine = await begin(providers, {
    ...(directory !== undefined && { directory }),
    secrets: createSecrets(secrets, { KEY: 'value-of-key' }),
    config: config => {
      config.secrets = secrets
    },
  })
  const submit = (manifest: object, origin = 'mcp:claude-code') =>
    engine.deputy.submit({ task: 'x', secrets: ['KEY'], ...manifest }, origin)
  return { ...engine, submit, providers }
}

const refused = (words: string) => ({
  code: 'denied',
  message: `The secret 'KEY' may not be used ${words}.`,
})

describe('a secret without rules', () => {
  it('is denied over MCP to a job with full network, and the error says how to allow it', async () => {
    const { submit } = await start()
    for (const origin of ['mcp', 'mcp:claude-code'])
      await expect(submit({ network: 'full' }, origin)).rejects.toMatchObject({
        ...refused('with network full, over MCP'),
        hint: expect.stringContaining('secrets: { KEY: {"from":"env:KEY","networks":["full"]} }'),
      })
    for (const manifest of [{}, { network: 'none' }, { network: ['example.org'] }]) await submit(manifest)
    for (const origin of ['cli', 'http']) await submit({ network: 'full' }, origin)
  })

  it('is allowed over MCP only if the runtime guarantees to block the network', async () => {
    const { submit, store } = await start()
    const { job_id } = await submit({})
    expect((await store.getManifest(job_id))?.network).toBe('none')
    const own = await submit({}, 'cli')
    expect((await store.getManifest(own.job_id))?.network).toBeUndefined()
  })

  it('is denied over MCP in a kept machine, which may have a network', async () => {
    const { deputy, submit, providers } = await start()
    const first = await deputy.submit({ task: 'x', network: 'full', lifecycle: 'persistent' }, 'mcp')
    ;(await providers[0]!.started(first.job_id)).finish({})
    const { machine_id } = await deputy.wait(first.job_id, {
      timeoutMs: 10_000,
      signal: new AbortController().signal,
    })
    await expect(submit({ machine: machine_id, network: 'none' })).rejects.toMatchObject(
      refused('in a kept machine, which may have a network, over MCP'),
    )
    await submit({ machine: machine_id }, 'cli')
  })
})

describe('a secret with rules', () => {
  it('is limited to its agents', async () => {
    const { submit } = await start({ agents: ['custom'] })
    await expect(submit({}, 'cli')).rejects.toMatchObject(refused("by the agent 'script'"))
    await submit({ agentType: 'custom', agent: { command: 'x' } }, 'cli')
  })

  it('is limited to its runtimes', async () => {
    const { submit } = await start({ runtimes: ['other'] })
    await expect(submit({}, 'cli')).rejects.toMatchObject(refused("in the runtime 'sandbox'"))
    await submit({ runtime: 'other' }, 'cli')
  })

  it('is limited to jobs with its labels', async () => {
    const { submit } = await start({ labels: ['team=release', 'reviewed'] })
    for (const labels of [{}, { team: 'release' }, { team: 'x', reviewed: '' }])
      await expect(submit({ labels }, 'cli')).rejects.toMatchObject({ code: 'denied' })
    await submit({ labels: { team: 'release', reviewed: '' } }, 'cli')
  })

  it('is limited to its networks, for every client', async () => {
    const { submit } = await start({ networks: ['*.example.org', 'npm.example.net'] })
    for (const origin of ['cli', 'mcp']) {
      for (const network of ['full', ['evil.example'], ['npm.example.net', 'example.org'], ['*.org']])
        await expect(submit({ network }, origin), String(network)).rejects.toMatchObject({ code: 'denied' })
      for (const network of ['none', ['a.example.org', 'NPM.example.net'], ['*.b.example.org']])
        await submit({ network }, origin)
    }
  })

  it('may allow full network over MCP', async () => {
    const { submit } = await start({ networks: ['full'] })
    for (const network of ['full', 'none', ['anything.example']]) await submit({ network })
  })
})

const never = new AbortController().signal

it('a secret that the configuration denies since the submit is not given to the job', async () => {
  const before = await start()
  for (let slot = 0; slot < before.providers[0]!.slots; slot++)
    await before.providers[0]!.started((await before.deputy.submit({ task: 'x' }, 'cli')).job_id)
  const { job_id } = await before.submit({}, 'cli')
  expect((await before.deputy.get(job_id)).status).toBe('pending')
  await before.close()
  const after = await start({ agents: ['custom'] }, before.directory)
  expect(await after.deputy.wait(job_id, { timeoutMs: 20_000, signal: never })).toMatchObject({
    status: 'failed',
    error: { message: refused("by the agent 'script'").message },
  })
  expect(after.providers[0]!.calls.filter(call => call.includes('start'))).toEqual([])
})

it('the value of a secret is removed from the command when the job has ended', async () => {
  const { submit, providers, deputy } = await start()
  const { job_id } = await submit({}, 'cli')
  const { request, finish } = await providers[0]!.started(job_id)
  if (!('command' in request)) throw new Error('the job was not started anew')
  expect(request.command.secrets).toEqual({ KEY: 'value-of-key' })
  finish({})
  await deputy.wait(job_id, { timeoutMs: 20_000, signal: never })
  expect(request.command.secrets).toEqual({})
})
