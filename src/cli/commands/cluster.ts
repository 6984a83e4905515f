import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'

export default defineCommand({
  name: 'cluster',
  summary: 'Send a command where it fits best, or look at the cluster',
  usage: 'submit COMMAND… | status TASK_ID | cluster-status',
  description: `Simple commands stay on this computer (where host.allow is set), heavy ones go to the least loaded node that
fits. Installed as cluster-router as well.`,
  examples: [
    ['deputy cluster submit make test', 'routed by what it is and how busy the machines are'],
    ['deputy cluster cluster-status', 'every node, as JSON'],
  ],
  flags: {
    node: { type: 'string', value: 'ID', summary: 'submit: this node' },
    requires: {
      type: 'string',
      value: 'K=V,…',
      summary: 'submit: os=linux,arch=arm64,capabilities=docker+gpu,label.zone=eu',
    },
    cwd: { type: 'string', value: 'DIR', summary: 'submit: take this directory along' },
    timeout: { type: 'duration', short: 't', value: 'TIME', summary: 'submit: end it after 90, 5m, 2h…' },
    'no-route': { type: 'boolean', summary: 'submit: stay on this computer' },
    json: { type: 'boolean', summary: 'submit: print the result as JSON; the others always do' },
  },
  words: ['submit', 'status', 'cluster-status'],
  // What follows the verb belongs to the command: `submit ls -la`.
  stopAt: (_, place) => place > 0,
  async run(context, { flags, args, rest }) {
    const [verb, ...words] = [...args, ...(rest ?? [])]
    const { submitRouted, routedStatus } = await import('../nodes/routed.ts')
    switch (verb) {
      case 'submit':
        if (words.length === 0) throw usage('Which command? deputy cluster submit COMMAND…', 'cluster')
        return submitRouted(context, words, flags)
      case 'status': {
        const [id] = words
        if (id === undefined) throw usage('Which task? deputy cluster status TASK_ID', 'cluster')
        return context.printJson(await routedStatus(context, id))
      }
      case 'cluster-status': {
        const client = await context.client()
        return context.printJson(await client.clusterStatus())
      }
      default:
        throw usage(
          verb === undefined
            ? 'What to do? submit, status or cluster-status.'
            : `cluster does not know '${verb}'; it knows submit, status and cluster-status.`,
          'cluster',
        )
    }
  },
})
