import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BROWSER, type Browser, startBrowser } from '../support/browser.ts'
import { removeDirectory, startDaemon, type TestDaemon } from '../support/daemon.ts'

const reason = BROWSER === undefined ? ' (skipped: no chromium in the PATH to look at it with)' : ''

describe.skipIf(BROWSER === undefined)(`batches and waiting jobs in the console${reason}`, () => {
  let daemon: TestDaemon
  let browser: Browser

  beforeAll(async () => {
    daemon = await startDaemon({ env: { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' } })
    browser = await startBrowser()
    await browser.show({ width: 1280, height: 800 })
    await browser.open(await daemon.client.consoleUrl({ mayApprove: false }))
    await browser.until(`document.querySelector('.tiles')`)
  })
  afterAll(async () => {
    await browser?.close()
    await daemon.kill()
    removeDirectory(daemon.directory)
  })

  const goTo = (hash: string) => browser.run(`location.hash = ${JSON.stringify(hash)}`)

  it('compare what several agents made of one task, with the end of their tests', async () => {
    const { job_id } = await daemon.client.submit({ task: 'echo 1 failed, 3 passed in 1.5s', agents: 2 })
    await goTo(`#/jobs/${job_id}`)
    await browser.until(`document.querySelectorAll('.batch-members .badge.success').length === 2`)
    await browser.run(`document.querySelector('.batch-members a.button').click()`)
    await browser.until(
      `[...document.querySelectorAll('.member .facts')].filter(f => /Tests\\s+3 passed, 1 failed/.test(f.innerText)).length === 2`,
    )
  })

  it('show what a job waits for, and how to look at its ports while it runs', async () => {
    const first = (await daemon.client.submit({ task: 'exec sleep 600' })).job_id
    const second = (await daemon.client.submit({ task: 'true', needs: [first] })).job_id
    await goTo(`#/jobs/${second}`)
    await browser.until(`document.querySelector('.progress')?.innerText === 'waits for job ${first}'`)
    await browser.run(`document.querySelector('.facts a[href="#/jobs/${first}"]').click()`)
    await browser.until(`document.querySelector('.forward')`)
    await browser.run(`{
      document.querySelector('.forward').open = true
      const port = document.querySelector('.forward input')
      port.value = '3000'
      port.dispatchEvent(new Event('input', { bubbles: true }))
    }`)
    await browser.until(
      `document.querySelector('.forward code')?.innerText === 'deputy forward ${first} 3000'`,
    )
    expect(await browser.run(`document.querySelector('.forward a').href`)).toBe('http://127.0.0.1:3000/')
    await daemon.client.cancel(first)
    await browser.until(`!document.querySelector('.forward')`)
    await goTo(`#/jobs/${second}`)
    await browser.until(
      `document.querySelector('.problem')?.innerText.includes('which this job needs, was cancelled')`,
    )
  })

  it('have no complaints', () => {
    expect(browser.complaints).toEqual([])
  })
})
