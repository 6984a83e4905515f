import { resolve } from 'node:path'
import { formatSize } from '../../jobs/sizes.ts'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { requireSqlite } from '../require-sqlite.ts'

export default defineCommand({
  usage: '[flags] FILE',
  description: `Writes one tar file with the database and every file that jobs refer to. The daemon may run meanwhile. The
configuration and the secrets are not part of it.`,
  examples: [['deputy backup ~/deputy-2026-11-15.tar', 'back up this home']],
  flags: { json: JSON_FLAG },
  async run(context, { flags, args }) {
    const [file] = args
    if (file === undefined) throw usage('backup needs a FILE.', 'backup')
    requireSqlite(context, 'backup')
    const { writeBackup } = await import('../../store/write-backup.ts')
    const backup = await writeBackup(context.home.stateDir, resolve(file))
    if (backup.missing > 0)
      await context.err.write(
        `warning: ${backup.missing} artifacts of jobs were missing before this backup\n`,
      )
    if (flags.json) return context.printJson({ file: resolve(file), ...backup })
    return context.print(
      `backed up ${backup.jobs} jobs and ${backup.blobs} files (${formatSize(backup.bytes)}) to ${file}\n`,
    )
  },
})
