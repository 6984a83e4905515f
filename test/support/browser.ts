import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { removeDirectory } from './remove-directory.ts'

/** The browser there is, if there is one. */
export const BROWSER = ['chromium', 'chromium-browser', 'google-chrome'].find(
  name => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
)

export interface Browser extends Page {
  /** Another tab of the same browser. */
  newTab(): Promise<Page>
  /** What the pages complained about: exceptions, blocked scripts, failed loads. */
  readonly complaints: string[]
  close(): Promise<void>
}

interface Page {
  open(url: string): Promise<void>
  /** Runs an expression in the page and gives its value. */
  run<T>(expression: string): Promise<T>
  /** Runs it again until it is true. */
  until(expression: string): Promise<void>
  reload(): Promise<void>
  screenshot(): Promise<Buffer>
  /** Presses one key: `j`, `/`, `Enter`. */
  press(key: string): Promise<void>
  /** The size of the window and the theme of the system. */
  show(as: { readonly width: number; readonly height: number; readonly dark?: boolean }): Promise<void>
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** A headless browser with one tab at first, spoken to over two pipes. */
export const startBrowser = async (): Promise<Browser> => {
  const profile = mkdtempSync(join(tmpdir(), 'deputy-browser-'))
  const child = spawn(
    BROWSER!,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--disable-background-networking',
      '--remote-debugging-pipe',
      `--user-data-dir=${profile}`,
    ],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: profile } },
  )
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const commands = child.stdio[3] as Writable
  const receive = child.stdio[4] as Readable
  const waiting = new Map<number, (message: Message) => void>()
  const complaints: string[] = []
  let next = 0
  let buffer = ''

  receive.setEncoding('utf8')
  receive.on('data', chunk => {
    buffer += chunk
    const messages = buffer.split('\0')
    buffer = messages.pop() ?? ''
    for (const text of messages) take(JSON.parse(text))
  })
  const take = (message: Message): void => {
    if (message.id !== undefined) waiting.get(message.id)?.(message)
    else if (message.method === 'Runtime.exceptionThrown' || message.method === 'Log.entryAdded')
      complaints.push(JSON.stringify(message.params))
  }
  const send = (method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const id = ++next
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id)
        if (error === undefined) resolve(result ?? {})
        else reject(new Error(`${method}: ${error.message}`))
      })
      commands.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`)
    })
  const newTab = async (): Promise<Page> => {
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
    const call = (method: string, params: object = {}) => send(method, params, String(sessionId))
    for (const domain of ['Page', 'Runtime', 'Log']) await call(`${domain}.enable`)
    return createPage(call)
  }

  return {
    ...(await newTab()),
    newTab,
    complaints,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      removeDirectory(profile)
    },
  }
}

const createPage = (call: (method: string, params?: object) => Promise<Record<string, unknown>>): Page => {
  const run = async <T>(expression: string): Promise<T> => {
    const { result, exceptionDetails } = await call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return (result as { value: T }).value
  }
  const page: Page = {
    run,
    // A tab behind another one draws nothing.
    open: async url => {
      await call('Page.bringToFront')
      await call('Page.navigate', { url })
    },
    until: async expression => {
      const deadline = performance.now() + 60_000
      // While a page is being replaced there may be no body and no element yet.
      const attempt = `(() => { try { return Boolean(${expression}) } catch { return false } })()`
      // Nor may there be anything to run it in.
      const isTrue = (): Promise<boolean> => run<boolean>(attempt).catch(() => false)
      while (!(await isTrue())) {
        if (performance.now() > deadline)
          throw new Error(`never true: ${expression}\n${await run<string>('document.body.innerText')}`)
        await sleep(50)
      }
    },
    reload: async () => {
      await run('window.isOld = true')
      await call('Page.reload')
      await page.until('!window.isOld')
    },
    screenshot: async () => {
      const { data } = await call('Page.captureScreenshot', { format: 'png' })
      return Buffer.from(String(data), 'base64')
    },
    press: async key => {
      const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined
      await call('Input.dispatchKeyEvent', { type: 'keyDown', key, ...(text && { text }) })
      await call('Input.dispatchKeyEvent', { type: 'keyUp', key })
    },
    show: async ({ width, height, dark = false }) => {
      await call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false })
      await call('Emulation.setEmulatedMedia', {
        features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }],
      })
    },
  }
  return page
}
