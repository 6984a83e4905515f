import axe from 'axe-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BROWSER, type Browser, startBrowser } from '../support/browser.ts'
import { removeDirectory, startDaemon, type TestDaemon } from '../support/daemon.ts'
import { until } from '../support/engine.ts'

const reason = BROWSER === undefined ? ' (skipped: no chromium in the PATH to look at it with)' : ''
const HOST = { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' }

/** What the terminal shows, for screen readers too. */
const SCREEN = `document.querySelector('.xterm-rows')?.innerText ?? ''`

describe.skipIf(BROWSER === undefined)(`a terminal in the console${reason}`, () => {
  let daemon: TestDaemon
  let browser: Browser

  beforeAll(async () => {
    daemon = await startDaemon({ env: HOST })
    browser = await startBrowser()
    await browser.show({ width: 1280, height: 800 })
    // The user ran `deputy open` on a terminal.
    await browser.open(await daemon.client.consoleUrl({ mayApprove: true }))
    await browser.until(`document.querySelector('.tiles')`)
  })
  afterAll(async () => {
    await browser?.close()
    await daemon.kill()
    removeDirectory(daemon.directory)
  })

  const goTo = (hash: string) => browser.run(`location.hash = ${JSON.stringify(hash)}`)
  const typeLine = async (line: string): Promise<void> => {
    await browser.until(`document.activeElement?.classList.contains('xterm-helper-textarea')`)
    for (const key of line) await browser.press(key)
    await browser.press('Enter')
  }
  const connected = () =>
    browser.until(`document.querySelector('.terminal-page [role=status]')?.innerText === 'connected'`)

  it('is not part of the first load', async () => {
    const loaded = await browser.run<string[]>(
      `performance.getEntriesByType('resource').map(({ name }) => name).filter(name => name.includes('/web/'))`,
    )
    for (const name of loaded.filter(name => name.endsWith('.js')))
      expect(await (await fetch(name)).text(), name).not.toContain('xterm-helper-textarea')
  })

  it('opens beside a running job, takes keys and knows the size of its window', async () => {
    const { job_id } = await daemon.client.submit({ task: 'echo begun; exec sleep 600' })
    await goTo(`#/jobs/${job_id}`)
    await browser.until(
      `[...document.querySelectorAll('a.button')].some(link => link.innerText === 'Terminal')`,
    )
    await browser.run(
      `[...document.querySelectorAll('a.button')].find(link => link.innerText === 'Terminal').click()`,
    )
    await connected()
    await typeLine('echo $((6*7))-answer; stty size')
    await browser.until(`(${SCREEN}).includes('42-answer')`)
    await browser.until(`/\\n\\d+ \\d+/.test(${SCREEN})`)
    const columns = async (): Promise<number> =>
      Number(
        /(\d+)\s*$/.exec(
          await browser.run<string>(`[...(${SCREEN}).matchAll(/^\\d+ \\d+/gm)].at(-1)[0]`),
        )?.[1],
      )
    const wide = await columns()
    expect(wide).toBeGreaterThan(80)
    await browser.show({ width: 480, height: 800 })
    await until(async () => {
      await typeLine('stty size')
      return (await columns()) < wide
    }, 'the program is told the new size')
    await browser.show({ width: 1280, height: 800 })
    const events = await daemon.client.events(job_id)
    expect(events.some(({ type }) => type === 'session')).toBe(true)
    await browser.run(axe.source)
    const faults = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))`
    expect(await browser.run(faults)).toEqual([])
    await typeLine('exit 3')
    await browser.until(`document.querySelector('[role=status]').innerText === 'ended with 3'`)
    expect((await daemon.client.get(job_id)).status).toBe('running')
    await daemon.client.cancel(job_id)
  })

  it('opens in a kept machine, as a job of its own that ends with it', async () => {
    const { job_id } = await daemon.client.submit({ task: 'echo kept > file', lifecycle: 'persistent' })
    // The machine of the job before may still be there.
    await until(async () => {
      const machines = await daemon.client.machines()
      return machines.length === 1 && machines[0]!.job_id === job_id && machines[0]!.state === 'kept'
    }, 'only the kept machine is left')
    await goTo('#/system')
    await browser.until(`document.querySelector('.machine a.button')`)
    await browser.run(`document.querySelector('.machine a.button').click()`)
    await connected()
    await typeLine('cat file; pwd')
    await browser.until(`(${SCREEN}).includes('kept')`)
    await goTo('#/jobs')
    // Leaving the page closes the terminal, and its job ends.
    await until(async () => {
      const { jobs } = await daemon.client.list({})
      return jobs.every(({ status }) => !['pending', 'provisioning', 'running'].includes(status))
    }, 'the job of the terminal ends')
    const machines = await daemon.client.machines()
    expect(machines.map(({ state }) => state)).toEqual(['kept'])
  })

  it('says what is wrong when the machine is gone', async () => {
    await goTo('#/terminal/0198a000-0000-7000-8000-000000000000')
    await browser.until(`document.querySelector('.problem')?.innerText.includes('is gone')`)
    await browser.until(`document.querySelector('[role=status]').innerText === 'not connected'`)
  })

  it('breaks no rule of the content security policy', () => {
    expect(browser.complaints).toEqual([])
  })
})
