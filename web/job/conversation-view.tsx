import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JobResult } from '../../src/engine/deputy.ts'
import { deputy, readBytes } from '../deputy.ts'
import { Empty, Problem } from '../parts.tsx'
import { useEvents } from '../use-fetch.ts'
import { parseConversation, type Turn } from './conversation.ts'

/** What an agent said and did, turn by turn. */
export const ConversationView = ({ id, result }: { id: string; result: JobResult | undefined }) => {
  const turns = useSignal<readonly Turn[] | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const read = async (): Promise<void> => {
    try {
      turns.value = parseConversation(await (await readBytes(await deputy.rawOutput(id))).text())
      problem.value = undefined
    } catch (error) {
      problem.value = error
    }
  }
  useEffect(() => void read(), [id])
  useEvents(() => void read(), { id, types: ['progress', 'state'] })
  const calls = turns.value?.filter(turn => turn.kind === 'call').length ?? 0
  const usage = result?.usage
  return (
    <section aria-label="Conversation" class="conversation">
      <Problem error={problem.value} />
      {turns.value?.length === 0 && <Empty title="The agent has not said anything yet" />}
      {turns.value !== undefined && turns.value.length > 0 && (
        <p class="soft">
          {calls} tool calls
          {usage?.turns != null && `, ${usage.turns} turns`}
          {usage?.model != null && `, ${usage.model}`}
        </p>
      )}
      {turns.value?.map((turn, index) =>
        turn.kind === 'text' ? (
          <p class="said" key={index}>
            {turn.text}
          </p>
        ) : (
          <div class={turn.failed ? 'tool-call wrong' : 'tool-call'} key={index}>
            <code>{turn.call}</code>
            <code class="soft">{turn.result ?? '…'}</code>
          </div>
        ),
      )}
    </section>
  )
}
