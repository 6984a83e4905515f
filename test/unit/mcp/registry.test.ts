import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { changes, defineTool, reads } from '../../../src/mcp/tool.ts'
import { selectTools, type Toolset } from '../../../src/mcp/toolset.ts'

const tool = (name: string, annotations = reads()) =>
  defineTool({
    name,
    title: name,
    description: `Does ${name}.`,
    annotations,
    input: z.strictObject({
      wait_seconds: z.number().int().optional(),
      name: z.string().max(9).default('x'),
    }),
    run: async input => ({ data: { name: input.name } }),
  })

const context = {
  directories: [],
  signal: AbortSignal.timeout(30_000),
  origin: 'test',
}

const deputy = new Proxy(Object.create(null), {
  get: () => () => Promise.reject(new Error('no deputy here')),
})

describe('a tool', () => {
  it('may be called without arguments', async () => {
    expect(await tool('look').call(undefined, { ...context, deputy })).toEqual({ data: { name: 'x' } })
  })

  it('refuses a misspelt argument and names the nearest one', async () => {
    await expect(tool('look').call({ wait_second: 5 }, { ...context, deputy })).rejects.toMatchObject({
      code: 'invalid',
      message: "Invalid arguments for look: unknown argument 'wait_second', did you mean 'wait_seconds'?",
    })
  })

  it('names the value it cannot take', async () => {
    await expect(tool('look').call({ name: 7 }, { ...context, deputy })).rejects.toMatchObject({
      message: expect.stringContaining("'name': expected string, received number (got 7)"),
    })
  })

  it('lists a schema without the noise of safe integers', () => {
    expect(tool('look').input).toEqual({
      type: 'object',
      properties: { wait_seconds: { type: 'integer' }, name: { type: 'string', default: 'x' } },
      additionalProperties: false,
    })
  })
})

describe('choosing toolsets', () => {
  const write = changes({ destructive: true, idempotent: true, openWorld: false })
  const available: Toolset[] = [
    { name: 'jobs', summary: 'Jobs', byDefault: true, tools: [tool('look'), tool('kill', write)] },
    { name: 'cluster', summary: 'Nodes', byDefault: false, tools: [tool('nodes')] },
  ]
  const names = (selection: Parameters<typeof selectTools>[1]) =>
    selectTools(available, selection).tools.map(each => each.name)

  it('takes the default ones when nobody chose', () => {
    expect(names({})).toEqual(['look', 'kill'])
  })

  it('takes named ones, and all of them', () => {
    expect(names({ toolsets: ['cluster'] })).toEqual(['nodes'])
    expect(names({ toolsets: ['default', 'cluster'] })).toEqual(['look', 'kill', 'nodes'])
    expect(names({ toolsets: ['all'] })).toEqual(['look', 'kill', 'nodes'])
  })

  it('leaves out whatever changes something when read-only', () => {
    expect(names({ toolsets: ['all'], readOnly: true })).toEqual(['look', 'nodes'])
  })

  it('tells of a name it does not know instead of failing', () => {
    expect(selectTools(available, { toolsets: ['clusters', 'jobs'] })).toMatchObject({
      toolsets: [{ name: 'jobs' }],
      problems: ["No toolset 'clusters', did you mean 'cluster'? Known: jobs, cluster."],
    })
  })
})
