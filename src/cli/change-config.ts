import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { isListening } from '../client/daemon-info.ts'
import { editConfigFile } from '../config/config-document.ts'
import { loadConfig } from '../config/load.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'

/** `deputy config set defaults.timeout 600`. The value is YAML; nothing is written unless the result is valid. */
export const setSetting = async (context: Context, path: string, text: string): Promise<number> => {
  const file = context.home.configFile
  const trial = mkdtempSync(join(tmpdir(), 'deputy-config-'))
  try {
    const copy = join(trial, 'config.yaml')
    if (existsSync(file)) copyFileSync(file, copy)
    const change = (target: string): void =>
      editConfigFile(target, document => document.setIn(path.split('.'), parse(text) as unknown))
    change(copy)
    loadConfig({ ...context.home, configFile: copy }, {})
    change(file)
  } finally {
    rmSync(trial, { recursive: true })
  }
  await context.print(`Set ${path} in ${file}.\n`)
  return sayRestart(context)
}

/** Opens the file in the user's editor, and checks it afterwards. */
export const editSettings = async (context: Context): Promise<number> => {
  const file = context.home.configFile
  const editor = context.env.VISUAL || context.env.EDITOR || 'vi'
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, '# Every setting: deputy config explain\n', { mode: 0o600 })
  }
  // The editor may be a command line, such as `code --wait`.
  const { status, error } = spawnSync('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' })
  if (error !== undefined || status !== 0)
    throw new AppError('invalid', `The editor '${editor}' failed.`, { hint: 'Set EDITOR to another one.' })
  loadConfig(context.home, context.env)
  return sayRestart(context)
}

const sayRestart = async (context: Context): Promise<number> => {
  if (await isListening(context.home.socket))
    await context.err.write('The daemon uses it after: deputy daemon restart\n')
  return 0
}
