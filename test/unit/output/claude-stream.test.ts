import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createClaudeStream } from '../../../src/output/claude-stream.ts'

const LINES = [
  { type: 'system', subtype: 'init', model: 'claude-sonnet-5', tools: ['Bash'] },
  { type: 'assistant', message: { content: [{ type: 'text', text: 'I will look\nat the file.' }] } },
  {
    type: 'assistant',
    message: { content: [{ type: 'tool_use', name: 'Bash', input: { command: 'ls  -la\n/work' } }] },
  },
  {
    type: 'user',
    message: { content: [{ type: 'tool_result', content: [{ type: 'text', text: 'a.txt\nb.txt' }] }] },
  },
  { type: 'user', message: { content: [{ type: 'tool_result', is_error: true, content: 'no such file' }] } },
  { type: 'assistant', message: { content: [{ type: 'tool_use', name: 'Odd', input: { a: 1 } }] } },
  {
    ...{
      type: 'result',
      subtype: 'success',
      is_error: false,
      result: 'done',
      num_turns: 3,
      total_cost_usd: 0.25,
    },
    usage: {
      input_tokens: 10,
      output_tokens: 20,
      cache_read_input_tokens: 5,
      cache_creation_input_tokens: 7,
    },
  },
]
const SOURCE = Buffer.from(LINES.map(line => `${JSON.stringify(line)}\n`).join(''))

const run = (chunks: Buffer[], redact = (text: string) => text) => {
  let text = ''
  const progress: string[] = []
  const stream = createClaudeStream({
    onText: more => (text += more),
    onProgress: line => progress.push(line),
    redact,
  })
  for (const chunk of chunks) stream.push(chunk)
  stream.end()
  return { text, progress, ...stream.summary() }
}

describe('the event stream of the Claude CLI', () => {
  it('is converted to text, progress and usage', () => {
    const { text, progress, usage, error } = run([SOURCE])
    expect(text).toBe(
      'I will look\nat the file.\n→ Bash: ls -la /work\n← a.txt b.txt\n✗ no such file\n→ Odd {"a":1}\n',
    )
    expect(progress).toEqual([
      'claude started (claude-sonnet-5)',
      'I will look at the file.',
      'Bash: ls -la /work',
      'Odd {"a":1}',
    ])
    expect(usage).toEqual({
      ...{
        inputTokens: 17,
        outputTokens: 20,
        cacheReadTokens: 5,
        costUsd: 0.25,
        turns: 3,
        model: 'claude-sonnet-5',
      },
    })
    expect(error).toBeNull()
  })

  it('does not depend on chunk boundaries', () => {
    const whole = run([SOURCE])
    fc.assert(
      fc.property(fc.array(fc.nat(SOURCE.length), { maxLength: 10 }), borders => {
        const at = [0, ...borders.sort((a, b) => a - b), SOURCE.length]
        expect(run(at.slice(1).map((end, index) => SOURCE.subarray(at[index]!, end)))).toEqual(whole)
      }),
    )
  })

  it('reports the error of the agent', () => {
    const failed = { type: 'result', subtype: 'error_max_turns', is_error: true, num_turns: 9, usage: {} }
    expect(run([Buffer.from(JSON.stringify(failed))]).error).toBe('error_max_turns')
    const spoken = { type: 'result', subtype: 'success', is_error: true, result: 'Invalid API key' }
    expect(run([Buffer.from(`${JSON.stringify(spoken)}\n`)]).error).toBe('Invalid API key')
  })

  it('passes on lines that are not events, and tolerates malformed events', () => {
    const odd = [
      'plain text',
      '{"type":',
      '{"no":"type"}',
      '[]',
      '{"type":"assistant"}',
      '{"type":"assistant","message":{"content":[null,5,{}]}}',
      '{"type":"result","usage":"x"}',
      '',
    ]
    expect(run([Buffer.from(odd.join('\n'))]).text).toBe('plain text\n{"type":\n{"no":"type"}\n[]\n')
  })

  it('redacts before it shortens', () => {
    const secret = 's'.repeat(400)
    const line = {
      type: 'assistant',
      message: { content: [{ type: 'tool_use', name: 'Bash', input: { command: `echo ${secret}` } }] },
    }
    const { text, progress } = run([Buffer.from(`${JSON.stringify(line)}\n`)], value =>
      value.replaceAll(secret, '***'),
    )
    expect(text).toBe('→ Bash: echo ***\n')
    expect(progress).toEqual(['Bash: echo ***'])
  })
})
