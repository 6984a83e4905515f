import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type InstructionsContext, instructions, MAX_BYTES } from '../../../src/mcp/instructions.ts'
import { jobsToolset } from '../../../src/mcp/tools/jobs/jobs-toolset.ts'
import { selectTools, type Toolset } from '../../../src/mcp/toolset.ts'

const cluster: Toolset = {
  name: 'cluster',
  summary: 'run commands on nodes',
  byDefault: false,
  instructions: 'Ask cluster_status first.',
  tools: [],
}
const available = [jobsToolset, cluster]

const write = (
  context: Partial<InstructionsContext> = {},
  { toolsets, readOnly = false }: { toolsets?: string[]; readOnly?: boolean } = {},
) =>
  instructions({
    context: { runtimes: [], agents: [], secrets: [], notes: [], ...context },
    selected: selectTools(available, { ...(toolsets && { toolsets }), readOnly }),
    available,
    readOnly,
  })

describe('the instructions', () => {
  it('say what is configured and what is not', () => {
    const text = write({
      runtimes: [
        { name: 'sandbox', ready: true },
        { name: 'microvm', ready: false, reason: 'qemu is not installed' },
      ],
      agents: ['reviewer'],
      secrets: ['TOKEN'],
      notes: ['The configuration file is not readable.'],
    })
    for (const part of [
      'Runtimes ready: sandbox.',
      'Not ready: microvm (qemu is not installed).',
      'Agent presets: reviewer.',
      'Secrets, by name: TOKEN.',
      'The configuration file is not readable.',
      'Not enabled: cluster (run commands on nodes)',
    ])
      expect(text).toContain(part)
  })

  it('name the way out when nothing can run', () => {
    expect(write()).toContain('No runtime is ready')
    expect(write()).toContain('deputy doctor')
  })

  it('carry what the chosen toolsets have to say, and only that', () => {
    expect(write({}, { toolsets: ['all'] })).toContain('Ask cluster_status first.')
    expect(write()).not.toContain('Ask cluster_status first.')
  })

  it('do not speak of submitting to a client that may only look', () => {
    const text = write({}, { readOnly: true })
    expect(text).toContain('read-only')
    expect(text).not.toContain('submit_job')
  })

  it('fit into what clients show, whatever is configured', () => {
    const words = fc.string({ unit: 'grapheme', maxLength: 400 }).map(text => text.replaceAll('\ufffd', ''))
    fc.assert(
      fc.property(
        fc.array(fc.record({ name: words, ready: fc.boolean(), reason: words }), { maxLength: 30 }),
        fc.array(words, { maxLength: 60 }),
        fc.array(words, { maxLength: 20 }),
        (runtimes, names, notes) => {
          const text = write(
            { runtimes, agents: names, secrets: names, notes },
            { toolsets: ['all', ...notes] },
          )
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_BYTES)
          // Neither half a character nor what stands for one.
          expect(Buffer.from(text).toString()).toBe(text)
          expect(text).not.toContain('\ufffd')
        },
      ),
    )
  })
})
