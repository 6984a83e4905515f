import type { MachineView } from '../../engine/deputy.ts'
import { visible } from '../../jobs/visible-text.ts'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { resolveMachineId } from '../resolve-id.ts'
import { age, shortId } from '../terminal/format.ts'
import type { Column } from '../terminal/table.ts'

export default defineCommand({
  usage: '[rm ID…]',
  description: 'Lists machines that run a job, wait in a pool, or are kept (run --keep).',
  flags: { json: JSON_FLAG },
  words: ['rm'],
  async run(context, { flags, args }) {
    const client = await context.client()
    const [verb, ...ids] = args
    if (verb === 'rm') {
      if (ids.length === 0) throw usage('No machine given. Usage: deputy machines rm ID', 'machines')
      const gone: string[] = []
      for (const text of ids) {
        const id = await resolveMachineId(client, text)
        await client.destroyMachine(id)
        gone.push(id)
        if (!flags.json) await context.print(`${id} destroyed\n`)
      }
      return flags.json ? context.printJson(gone.map(id => ({ machine_id: id, destroyed: true }))) : 0
    }
    if (verb !== undefined) throw usage(`Unknown subcommand 'machines ${verb}'. Use rm.`, 'machines')
    const machines = await client.machines()
    if (flags.json) return context.printJson(machines)
    if (machines.length === 0) return context.print('No machines.\n')
    await context.printTable(machines, COLUMNS)
    const problems = machines
      .filter(machine => machine.problem !== null)
      .map(({ machine_id, problem }) => `${shortId(machine_id)}: ${visible(problem!)}\n`)
    return context.print(problems.join(''))
  },
})

const COLUMNS: Column<MachineView>[] = [
  { title: 'ID', value: machine => shortId(machine.machine_id) },
  { title: 'STATE', value: machine => machine.state },
  { title: 'RUNTIME', value: machine => machine.runtime },
  { title: 'WHERE', value: machine => machine.where ?? '–' },
  { title: 'JOB', value: machine => (machine.job_id === null ? '–' : shortId(machine.job_id)) },
  { title: 'AGE', value: machine => age(machine.created_at), align: 'right' },
  { title: 'KEPT UNTIL', value: machine => machine.lease_until ?? '–' },
]
