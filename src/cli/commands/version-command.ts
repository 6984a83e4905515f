import { VERSION } from '../../version.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'

export default defineCommand({
  usage: '',
  flags: { json: JSON_FLAG },
  run: (context, { flags }) =>
    flags.json
      ? context.printJson({
          version: VERSION,
          node: process.version,
          platform: process.platform,
          arch: process.arch,
        })
      : context.print(`${VERSION}\n`),
})
