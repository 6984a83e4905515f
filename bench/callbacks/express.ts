import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSION = '5.3.0'

/** The directory below which Express is installed, which is no dependency of ours; undefined when it cannot be had. */
export const findExpress = (): string | undefined => {
  const directory = fileURLToPath(new URL(`../../../bench-peers/express-${VERSION}`, import.meta.url))
  if (existsSync(join(directory, 'node_modules/express/package.json'))) return directory
  mkdirSync(directory, { recursive: true })
  const flags = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', directory]
  const { status } = spawnSync('npm', ['install', ...flags, `express@${VERSION}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 120_000,
  })
  return status === 0 ? directory : undefined
}
