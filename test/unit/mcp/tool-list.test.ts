import { describe, expect, it } from 'vitest'
import { jobsToolset } from '../../../src/mcp/tools/jobs/jobs-toolset.ts'
import { connect } from '../../support/mcp/clients.ts'
import { lintTool } from '../../support/mcp/lint-tool.ts'
import { estimateTokens } from '../../support/mcp/tokens.ts'

describe('the default list of tools', () => {
  const listed = async (era: 'modern' | 'legacy') => {
    await using session = await connect({ wire: 'http', era })
    return (await session.client.listTools()).tools
  }

  it('is what it was: a change here is a change for every user', async () => {
    await expect(`${JSON.stringify(await listed('modern'), null, 2)}\n`).toMatchFileSnapshot(
      './__snapshots__/tools-list.json.snap',
    )
  })

  it('is the same for both eras, and every time', async () => {
    expect(await listed('legacy')).toEqual(await listed('modern'))
    expect(await listed('modern')).toEqual(await listed('modern'))
  })

  it('costs a model less than 1,600 tokens, with everything in it', async () => {
    expect(estimateTokens(JSON.stringify(await listed('modern')))).toBeLessThan(1600)
  })
})

describe.each(jobsToolset.tools)('$name', tool => {
  it('is described in a way every client can read', () => {
    expect(lintTool(tool)).toEqual([])
  })
})
