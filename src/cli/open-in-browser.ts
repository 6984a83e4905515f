import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export interface OpenOptions {
  readonly env: NodeJS.ProcessEnv
  /** A directory that only the user can read. */
  readonly directory: string
  readonly platform?: NodeJS.Platform
}

/**
 * Opens an address that is a secret. Every user of the computer can read the arguments of a process, so the browser
 * gets the address of a file that leads there. Resolves with false when there is no browser to ask.
 */
export const openInBrowser = async (url: string, options: OpenOptions): Promise<boolean> => {
  const command = browserCommand(options)
  if (command === undefined) return false
  const file = join(options.directory, 'open-console.html')
  await rm(file, { force: true })
  await writeFile(file, redirectPage(url), { mode: 0o600, flag: 'wx' })
  return start(command, pathToFileURL(file).href, options.env)
}

const browserCommand = ({ env, platform = process.platform }: OpenOptions): string | undefined => {
  if (env.BROWSER) return env.BROWSER
  if (platform === 'darwin') return 'open'
  return env.DISPLAY || env.WAYLAND_DISPLAY ? 'xdg-open' : undefined
}

const redirectPage = (url: string): string => `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=${url.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}">
<title>Deputy</title>
`

/** Waits only until the opener has started: it may run as long as the browser. */
const start = (command: string, address: string, env: NodeJS.ProcessEnv): Promise<boolean> =>
  new Promise(resolve => {
    const child = spawn(command, [address], { stdio: 'ignore', detached: true, env })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
