import type { ApprovalView } from '../../client/daemon-calls.ts'
import { AppError } from '../../jobs/errors.ts'
import { visible } from '../../jobs/visible-text.ts'
import type { Context } from '../context.ts'
import { confirm } from '../terminal/confirm.ts'

/** Shows a call that an agent wants to make and asks the user. There is no flag that answers for them. */
export const approveCall = async (context: Context, id: string | undefined): Promise<number> => {
  const client = await context.client()
  const waiting = (await client.approvals()).filter(plan => !plan.approved)
  if (id === undefined) {
    if (waiting.length === 0) return context.print('No call waits for your approval.\n')
    return context.print(
      waiting.map(plan => `${describe(plan)}  deputy proxmox approve ${plan.id}\n`).join('\n'),
    )
  }
  const plan = waiting.find(one => one.id === id)
  if (plan === undefined)
    throw new AppError('not_found', `No pending call has the id '${id}'.`, { hint: 'deputy proxmox approve' })
  if (!process.stdin.isTTY)
    throw new AppError('denied', 'A call can be approved only on a terminal.', {
      hint: `Run it in a terminal of your own: deputy proxmox approve ${id}`,
    })
  await context.err.write(describe(plan))
  if (!(await confirm('Allow this once?'))) return context.print('Not approved.\n')
  const { expires_at } = await client.approve(id)
  return context.print(`Approved until ${expires_at}. The agent may repeat the call once.\n`)
}

const describe = ({ who, call, params, guests }: ApprovalView): string =>
  [
    `${who} wants to: ${call}`,
    ...Object.entries(params).map(([key, value]) => `  ${key} = ${String(value)}`),
    ...guests.map(guest => `  reaches ${guest}`),
  ]
    .map(line => `${visible(line)}\n`)
    .join('')
