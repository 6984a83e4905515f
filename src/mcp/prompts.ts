import type { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** Registers the prompt that guides an agent through delegating a task. */
export const registerPrompts = (server: McpServer): void => {
  server.registerPrompt(
    'delegate',
    {
      title: 'Delegate a task',
      description: 'Hand a task to an isolated machine and bring back what it did',
      argsSchema: z.object({
        task: z.string().describe('What to do'),
        context: z.string().optional().describe('Relevant files, limits and preferences'),
      }),
    },
    ({ task, context }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: walkthrough(task, context) } }],
    }),
  )
}

const walkthrough = (task: string, context: string | undefined): string =>
  `Delegate this with Deputy's tools:

${task}${context ? `\n\nContext:\n${context}` : ''}

1. Make the job self-contained. Its machine is empty apart from the system: nothing of this conversation, no home directory, and no network unless asked for. Put inputs into manifest.files (text), or a local directory into manifest.workspace.path. The job starts in /work.
2. Say what comes back: list globs in manifest.artifacts; with workspace, patch: true returns the changes as a patch.
3. Ask for no more than it needs: network as a list of domains rather than full, secrets by name (never paste a value), a timeout that fits, resources only if the default is too small.
4. Write the script so that it fails loudly (set -eu). Give an idempotency_key, so that a repeated submit cannot run it twice.
5. submit_job, then get_job_result with wait_seconds: 50 until it has finished. Do other work meanwhile: the job runs without you. Submit independent parts as separate jobs, all at once.
6. get_job_result. Judge by exit_code, error and output, not by status alone; read artifacts with read_artifact. If it failed, change what was wrong before submitting again.
7. Report what was done, with the job_id, and what was not.`
