import type { Deputy, JobView, SubmitOptions } from '../engine/deputy.ts'
import { AppError } from '../jobs/errors.ts'
import { planRouted, type RoutedCommand, type Routing } from './plan-routed.ts'

export interface SubmittedCommand {
  readonly job: JobView
  readonly auto_routed: boolean
  /** Why the command runs here or on a node; the node is chosen when it starts. */
  readonly routing: string
  /** Name of this computer in results. */
  readonly local_node: string
}

/** Plans a command and submits it as a job. */
export const submitRouted = async (
  routing: Routing,
  deputy: Pick<Deputy, 'submit'>,
  request: RoutedCommand,
  origin: string,
  options: SubmitOptions,
): Promise<SubmittedCommand> => {
  if (routing.cluster.nodes.length === 0)
    throw new AppError('not_found', 'No nodes configured.', { hint: 'Add one: deputy nodes add user@host' })
  const plan = await planRouted(request, routing)
  const job = await deputy.submit(plan.manifest, origin, options)
  return { job, auto_routed: plan.autoRouted, routing: plan.because, local_node: routing.localName }
}
