import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { BROWSER, type Browser, startBrowser } from './browser.ts'
import { type DaemonSettings, removeDirectory, startDaemon, type TestDaemon } from './daemon.ts'

/** Why no test of the console can run here. */
export const withoutBrowser = BROWSER === undefined ? ' (skipped: no chromium in the PATH)' : ''

const SCREENSHOTS = fileURLToPath(new URL('../../.cache/screenshots', import.meta.url))

export interface ConsoleSettings extends DaemonSettings {
  /** As for a user who ran `deputy open` on a terminal. */
  readonly mayApprove?: boolean
}

/**
 * Starts a daemon whose jobs run on the host, and a browser that is logged in to its console, for the tests of a
 * suite. A test that fails leaves a picture of the page in .cache/screenshots.
 */
export const useConsole = (prepare: () => ConsoleSettings = () => ({})) => {
  let daemon: TestDaemon
  let browser: Browser
  beforeAll(async () => {
    const { mayApprove = false, env, ...settings } = prepare()
    daemon = await startDaemon({
      ...settings,
      env: { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host', ...env },
    })
    browser = await startBrowser()
    await browser.show({ width: 1280, height: 800 })
    await browser.open(await daemon.client.consoleUrl({ mayApprove }))
    await browser.until(`document.querySelector('.tiles')`)
  })
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') await saveScreenshot(browser, task.name)
  })
  afterAll(async () => {
    await browser?.close()
    await daemon?.kill()
    if (daemon) removeDirectory(daemon.directory)
  })
  return {
    get daemon(): TestDaemon {
      return daemon
    },
    get browser(): Browser {
      return browser
    },
    goTo: (hash: string) => browser.run(`location.hash = ${JSON.stringify(hash)}`),
  }
}

/** The terminal page of a browser. */
export const terminalOf = (browser: () => Browser) => ({
  connected: () =>
    browser().until(`document.querySelector('.terminal-page [role=status]')?.innerText === 'connected'`),
  typeLine: async (line: string): Promise<void> => {
    await browser().until(`document.activeElement?.classList.contains('xterm-helper-textarea')`)
    for (const key of line) await browser().press(key)
    await browser().press('Enter')
  },
  /** Waits for text on the screen, as screen readers have it. */
  shows: (text: string) => browser().until(`(${SCREEN}).includes(${JSON.stringify(text)})`),
})

/** What the terminal shows. */
export const SCREEN = `document.querySelector('.xterm-rows')?.innerText ?? ''`

/** Keeps what the page looks like; a page that has crashed keeps nothing. */
export const saveScreenshot = async (browser: Browser, name: string): Promise<void> => {
  const picture = await browser.screenshot().catch(() => undefined)
  if (picture === undefined) return
  mkdirSync(SCREENSHOTS, { recursive: true })
  writeFileSync(join(SCREENSHOTS, `${name.replace(/\W+/g, '-').slice(0, 80)}.png`), picture)
}
