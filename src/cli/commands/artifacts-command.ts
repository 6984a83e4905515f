import { formatSize } from '../../jobs/sizes.ts'
import { visible } from '../../jobs/visible-text.ts'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { resolveJobId } from '../resolve-id.ts'

export default defineCommand({
  usage: '[get] ID [PATH…]',
  takesJobs: true,
  examples: [
    ['deputy artifacts last', 'what there is'],
    ['deputy artifacts get last --output results', 'all of it, into a directory'],
    ['deputy artifacts get last report.json --output - | jq .', 'one file, to stdout'],
  ],
  flags: {
    output: {
      type: 'string',
      short: 'o',
      value: 'DIR',
      summary: 'Where to put them (default: here); - is stdout',
    },
    force: { type: 'boolean', short: 'f', summary: 'Replace files that are there' },
    json: JSON_FLAG,
  },
  words: ['get'],
  async run(context, { flags, args }) {
    const getting = args[0] === 'get'
    const [wanted, ...paths] = getting ? args.slice(1) : args
    const client = await context.client()
    const id = await resolveJobId(client, wanted)
    const artifacts = await client.artifacts(id)
    if (!getting) {
      if (flags.json) return context.printJson(artifacts)
      return context.printTable(artifacts, [
        { title: 'SIZE', value: file => formatSize(file.size), align: 'right' },
        { title: 'PATH', value: file => file.path },
      ])
    }
    const { fetchArtifact, fetchArtifacts } = await import('../fetch-artifacts.ts')
    if (flags.output === '-') {
      if (paths.length !== 1) throw usage('--output - takes exactly one file.', 'artifacts')
      await fetchArtifact(context, client, { id, path: paths[0]! })
      return 0
    }
    const options = { id, artifacts, paths, directory: flags.output ?? '.', force: flags.force }
    const written = await fetchArtifacts(client, options)
    if (flags.json) return context.printJson(written)
    return context.print(written.map(file => `${visible(file.path)}\n`).join(''))
  },
})
