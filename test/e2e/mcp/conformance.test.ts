import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { findTools, runTool } from '../../support/e2e-tools.ts'
import { createFixtureFactory } from '../../support/mcp/conformance/index.ts'
import { startHttpServer } from '../../support/mcp/http-server.ts'

const { tools, reason } = findTools()
const REVISIONS = ['2026-07-28', '2025-11-25']

/** Checks that passed with fixtures, by revision. */
const counts = new Map<string, string>()

describe.skipIf(!tools)(`the official conformance suite${reason ? ` (${reason})` : ''}`, () => {
  const conformance = async (url: string, ...args: string[]) => {
    const { status, stdout, stderr } = await runTool(tools!.node, [
      tools!.conformance,
      'server',
      '--url',
      url,
      ...args,
    ])
    const summary = stdout.slice(Math.max(0, stdout.indexOf('=== SUMMARY')))
    return { status, summary: `${summary}${stderr}` }
  }

  it.each(REVISIONS)('passes every check for %s with its fixtures mounted, scored or not', async revision => {
    await using server = await startHttpServer({ makeFactory: createFixtureFactory })
    const { status, summary } = await conformance(server.url, '--requirements', revision)
    const [, passed] = /Total: (\d{2,}) passed, 0 failed/.exec(summary) ?? []
    expect(passed, summary).toBeDefined()
    expect(summary).not.toContain('✗')
    expect(status).toBe(0)
    counts.set(revision, passed!)
  })

  it('has passed as many checks as the documentation says', async () => {
    const page = fileURLToPath(new URL('../../../docs/mcp-clients.md', import.meta.url))
    let text = readFileSync(page, 'utf8')
    for (const [revision, passed] of counts)
      text = text.replace(new RegExp(`^\\| ${revision} \\|.*$`, 'm'), `| ${revision} | ${passed} | 0 |`)
    // After a change: vitest run --project e2e test/e2e/mcp/conformance.test.ts -u
    await expect(text).toMatchFileSnapshot(page)
  })

  it.each(REVISIONS)('passes for %s on the plain product wherever no fixture is needed', async revision => {
    await using server = await startHttpServer()
    const baseline = fileURLToPath(new URL(`./conformance-baseline-${revision}.yml`, import.meta.url))
    const { status, summary } = await conformance(
      server.url,
      '--requirements',
      revision,
      '--expected-failures',
      baseline,
    )
    expect(summary).toContain('all failures are expected')
    expect(status).toBe(0)
  })
})
