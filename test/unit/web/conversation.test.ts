import { expect, it } from 'vitest'
import { parseConversation } from '../../../web/job/conversation.ts'

it('pairs the tool calls of an agent with their results', () => {
  const log = `I look at the tests.\n\nThen I run them.\n→ Read: a.ts\n→ Bash: npm test\n← const a = 1\n✗ 1 failed\nFixed.\n`
  expect(parseConversation(log)).toEqual([
    { kind: 'text', text: 'I look at the tests.\n\nThen I run them.' },
    { kind: 'call', call: 'Read: a.ts', result: 'const a = 1', failed: false },
    { kind: 'call', call: 'Bash: npm test', result: '1 failed', failed: true },
    { kind: 'text', text: 'Fixed.' },
  ])
})

it('keeps a result without a call as text, and a call without a result', () => {
  expect(parseConversation('← nobody asked\n→ Bash: sleep')).toEqual([
    { kind: 'text', text: '← nobody asked' },
    { kind: 'call', call: 'Bash: sleep', result: undefined, failed: false },
  ])
  expect(parseConversation('')).toEqual([])
})
