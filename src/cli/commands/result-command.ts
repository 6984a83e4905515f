import type { BatchMember } from '../../engine/deputy.ts'
import { formatSize } from '../../jobs/sizes.ts'
import { visible } from '../../jobs/visible-text.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { exitStatusOf } from '../exit-status.ts'
import { describeJob } from '../job-details.ts'
import { resolveJobId } from '../resolve-id.ts'
import { fact } from '../terminal/fact.ts'
import { createSafeOutput } from '../terminal/safe-output.ts'
import { lineWidth } from '../terminal/wrap.ts'

export default defineCommand({
  usage: '[flags] ID',
  takesJobs: true,
  flags: {
    'max-bytes': { type: 'number', value: 'N', summary: 'Limit the output; its head and tail are kept' },
    'exit-code': { type: 'boolean', summary: "Exit with the job's exit status" },
    json: JSON_FLAG,
  },
  async run(context, { flags, args }) {
    const client = await context.client()
    const id = await resolveJobId(client, args[0])
    const maxBytes = flags['max-bytes']
    const result = await client.result(id, maxBytes === undefined ? {} : { maxBytes })
    const status = flags['exit-code'] ? exitStatusOf(result) : 0
    if (flags.json) {
      await context.printJson(result)
      return status
    }
    const { dim } = context.colors
    const width = lineWidth(context.out)
    const lines: string[] = []
    const add = (name: string, value: string) => lines.push(fact(name, visible(value), context.colors, width))
    for (const file of result.artifacts) add('artifact', `${file.path} (${formatSize(file.size)})`)
    for (const skipped of result.skipped_artifacts) add('skipped', `${skipped.path}: ${skipped.reason}`)
    for (const glob of result.unmatched_artifacts ?? []) add('no match', glob)
    if (result.patch) add('patch', `${formatSize(result.patch.size)}: deputy patch ${id}`)
    for (const member of result.members ?? []) add('member', memberLine(member))
    if (result.executed_on?.because) add('why there', result.executed_on.because)
    if (result.isolation.length > 0) add('isolation', result.isolation.join(', '))
    for (const limit of result.limits_hit) add('limit', limit)
    const safe = createSafeOutput({ colors: context.colors.enabled })
    const output = context.out.isTTY ? safe.push(Buffer.from(result.output)) + safe.end() : result.output
    const separator = result.output === '' ? '' : `${dim('output')}\n`
    await context.print(`${describeJob(result, context.colors, width)}${lines.join('')}${separator}${output}`)
    if (output !== '' && !output.endsWith('\n') && context.out.isTTY) await context.print('\n')
    return status
  },
})

const memberLine = ({ job_id, status, exit_code, has_patch, usage }: BatchMember): string => {
  const facts = [
    exit_code === null ? status : `${status} (exit ${exit_code})`,
    ...(has_patch ? [`deputy patch ${job_id}`] : []),
    ...(usage?.costUsd == null ? [] : [`$${usage.costUsd.toFixed(2)}`]),
  ]
  return `${job_id}  ${facts.join(', ')}`
}
