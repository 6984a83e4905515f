import { resolve } from 'node:path'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { requireSqlite } from '../require-sqlite.ts'

export default defineCommand({
  usage: '[flags] FILE',
  description: `Checks the backup, then replaces the database and adds the files of its jobs. The daemon must be stopped. The
replaced database is kept beside the new one. Jobs that were waiting when the backup was made are marked as failed,
because they may have run since.`,
  examples: [['deputy daemon stop && deputy restore ~/deputy-2026-11-15.tar', 'go back to a backup']],
  flags: { json: JSON_FLAG },
  async run(context, { flags, args }) {
    const [file] = args
    if (file === undefined) throw usage('restore needs a FILE.', 'restore')
    requireSqlite(context, 'restore')
    const { restoreBackup } = await import('../../store/restore-backup.ts')
    const restored = await restoreBackup(context.home.stateDir, resolve(file))
    if (flags.json) return context.printJson(restored)
    const waiting =
      restored.notRun === 0 ? '' : `${restored.notRun} jobs were waiting and are not run again\n`
    return context.print(`restored ${file}; the database before is ${restored.replaced}\n${waiting}`)
  },
})
