import { z } from 'zod'
import { changes, defineTool, type Tool } from '../../tool.ts'
import {
  COMMON_INPUT,
  type CommandTools,
  REQUIREMENTS,
  requirementsOf,
  runCommand,
} from './run-on-cluster.ts'

export const clusterBash = (tools: CommandTools): Tool =>
  defineTool({
    name: 'cluster_bash',
    title: 'Run a command on the cluster',
    description:
      'Run a bash command where it fits best: simple ones here, heavy ones on the least loaded node that fits.',
    annotations: changes({ destructive: true, idempotent: false, openWorld: true }),
    input: z.strictObject({
      command: z.string().min(1),
      ...REQUIREMENTS,
      auto_route: z.boolean().default(true).describe('false: stay on this computer'),
      ...COMMON_INPUT,
    }),
    run: (input, context) =>
      runCommand(
        tools,
        {
          command: input.command,
          requires: requirementsOf(input),
          autoRoute: input.auto_route,
          cwd: input.cwd,
          timeoutSeconds: input.timeout,
        },
        input.wait_seconds,
        context,
      ),
  })
