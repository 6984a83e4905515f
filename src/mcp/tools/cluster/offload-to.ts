import { z } from 'zod'
import { changes, defineTool, type Tool } from '../../tool.ts'
import { COMMON_INPUT, type CommandTools, runCommand } from './run-on-cluster.ts'

export const offloadTo = (tools: CommandTools): Tool =>
  defineTool({
    name: 'offload_to',
    title: 'Run a command on one node',
    description: 'Run a bash command on a given node of the cluster.',
    annotations: changes({ destructive: true, idempotent: false, openWorld: true }),
    input: z.strictObject({
      command: z.string().min(1),
      node_id: z.string().min(1).describe('Id or alias from cluster_status'),
      ...COMMON_INPUT,
    }),
    run: (input, context) =>
      runCommand(
        tools,
        {
          command: input.command,
          node: input.node_id,
          autoRoute: true,
          cwd: input.cwd,
          timeoutSeconds: input.timeout,
        },
        input.wait_seconds,
        context,
      ),
  })
