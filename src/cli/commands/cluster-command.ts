import { unknownSubcommand, usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'

const VERBS = ['submit', 'status', 'cluster-status']

export default defineCommand({
  usage: 'submit COMMAND… | status TASK_ID | cluster-status',
  description: `Light commands run on this computer if host.allow is set; heavy ones run on the least loaded node that fits. Also
installed as cluster-router.`,
  examples: [
    ['deputy cluster submit make test', 'routed by what it is and how busy the machines are'],
    ['deputy cluster cluster-status', 'every node, as JSON'],
  ],
  flags: {
    node: { type: 'string', value: 'ID', summary: 'submit: run on this node' },
    requires: {
      type: 'string',
      value: 'K=V,…',
      summary: 'submit: such as os=linux,arch=arm64,label.zone=eu',
    },
    cwd: { type: 'string', value: 'DIR', summary: 'submit: copy this directory to the node' },
    timeout: {
      type: 'duration',
      short: 't',
      value: 'TIME',
      summary: 'submit: stop the command after 90, 5m, 2h…',
    },
    'no-route': { type: 'boolean', summary: 'submit: stay on this computer' },
    json: { type: 'boolean', summary: 'submit: print the result as JSON; other subcommands always do' },
  },
  words: VERBS,
  // Words after the subcommand belong to the command: `submit ls -la`.
  stopAt: (_, place) => place > 0,
  async run(context, { flags, args, rest }) {
    const [verb, ...words] = [...args, ...(rest ?? [])]
    const { submitRouted, routedStatus } = await import('../nodes/routed.ts')
    switch (verb) {
      case 'submit':
        if (words.length === 0)
          throw usage('No command given. Usage: deputy cluster submit COMMAND…', 'cluster')
        return submitRouted(context, words, flags)
      case 'status': {
        const [id] = words
        if (id === undefined) throw usage('No task given. Usage: deputy cluster status TASK_ID', 'cluster')
        return context.printJson(await routedStatus(context, id))
      }
      case 'cluster-status': {
        const client = await context.client()
        return context.printJson(await client.clusterStatus())
      }
      default:
        throw unknownSubcommand('cluster', verb, VERBS)
    }
  },
})
