import type { DaemonSummary } from '../../engine/deputy.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { age } from '../terminal/format.ts'
import type { Column } from '../terminal/table.ts'

export default defineCommand({
  usage: '',
  description:
    'Shows the state, version, slots and jobs of each daemon. Daemons with the same KEY take over jobs of each other. See docs/fleet.md.',
  flags: { json: JSON_FLAG },
  async run(context, { flags }) {
    const daemons = await (await context.client()).daemons()
    if (flags.json) return context.printJson(daemons)
    if (daemons.length === 0) return context.print('The daemon does not share its database (SQLite).\n')
    return context.printTable(daemons, COLUMNS)
  },
})

const COLUMNS: Column<DaemonSummary>[] = [
  { title: 'NAME', value: daemon => daemon.name },
  { title: 'STATE', value: daemon => daemon.state },
  { title: 'HOST', value: daemon => daemon.host },
  { title: 'VERSION', value: daemon => daemon.version },
  { title: 'JOBS', value: daemon => String(daemon.jobs), align: 'right' },
  {
    title: 'SLOTS',
    value: ({ runtimes }) =>
      Object.entries(runtimes)
        .map(([name, slots]) => `${name} ${slots}`)
        .join(', ') || '–',
  },
  { title: 'KEY', value: ({ key_id }) => key_id?.slice(0, 8) ?? '–' },
  { title: 'UP SINCE', value: daemon => age(daemon.started_at), align: 'right' },
]
