import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { oneLine } from '../../../jobs/visible-text.ts'
import { planRouted, type RoutedCommand, type Routing } from '../../../routing/plan-routed.ts'
import type { ToolContext, ToolOutcome } from '../../tool.ts'

/** Whether commands may run on this computer without isolation: `host.allow`. */
export interface HostAccess {
  allowed: boolean
  /** Sets `host.allow` in the configuration file. Absent where the environment of the daemon decides. */
  readonly allow?: () => void
  /** The user has said no, and is not asked again while the daemon runs. */
  declined?: boolean
}

const STATE = randomUUID()

/**
 * Asks the user whether commands may run on this computer, for a command that would stay here. Only a client on this
 * computer asks: its user is the one whose rights the command would have. Returns the question that is still open.
 */
export const askForHost = async (
  tools: Routing & { readonly hostAccess: HostAccess },
  request: RoutedCommand,
  { elicitation, directories }: ToolContext,
): Promise<ToolOutcome['question']> => {
  const { hostAccess } = tools
  if (elicitation === undefined || directories.length === 0) return undefined
  if (hostAccess.allowed || hostAccess.declined || hostAccess.allow === undefined) return undefined
  const { answer } = elicitation
  if (answer?.state === STATE) {
    if (answer.action === 'accept') hostAccess.allow()
    // A client without a user at hand cancels; that is no answer.
    hostAccess.declined = answer.action === 'decline'
    return undefined
  }
  if (!(await wouldStay(tools, request))) return undefined
  return {
    // The agent chose the command: it comes last, and on one line.
    message: `Run commands on this computer, as ${userInfo().username} and without isolation? This sets host.allow for all clients; deputy config set host.allow false undoes it. The first command: ${oneLine(request.command, 200)}`,
    note: 'The commands can do all that you can',
    state: STATE,
  }
}

/** A command that its policy refuses here is not asked for. */
const wouldStay = async (tools: Routing, request: RoutedCommand): Promise<boolean> => {
  try {
    const { manifest } = await planRouted(request, { ...tools, hostAllowed: true })
    return manifest.runtime === 'host'
  } catch {
    return false
  }
}
