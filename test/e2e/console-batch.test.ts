import { describe, expect, it } from 'vitest'
import { useConsole, withoutBrowser } from '../support/console.ts'

describe.skipIf(withoutBrowser !== '')(`batches and waiting jobs in the console${withoutBrowser}`, () => {
  const page = useConsole()
  it('compare what several agents made of one task, with the end of their tests', async () => {
    const { job_id } = await page.daemon.client.submit({ task: 'echo 1 failed, 3 passed in 1.5s', agents: 2 })
    await page.goTo(`#/jobs/${job_id}`)
    await page.browser.until(`document.querySelectorAll('.batch-members .badge.success').length === 2`)
    await page.browser.run(`document.querySelector('.batch-members a.button').click()`)
    await page.browser.until(
      `[...document.querySelectorAll('.member .facts')].filter(f => /Tests\\s+3 passed, 1 failed/.test(f.innerText)).length === 2`,
    )
  })

  it('show what a job waits for, and how to look at its ports while it runs', async () => {
    const first = (await page.daemon.client.submit({ task: 'exec sleep 600' })).job_id
    const second = (await page.daemon.client.submit({ task: 'true', needs: [first] })).job_id
    await page.goTo(`#/jobs/${second}`)
    await page.browser.until(`document.querySelector('.progress')?.innerText === 'waits for job ${first}'`)
    await page.browser.run(`document.querySelector('.facts a[href="#/jobs/${first}"]').click()`)
    await page.browser.until(`document.querySelector('.forward')`)
    await page.browser.run(`{
      document.querySelector('.forward').open = true
      const port = document.querySelector('.forward input')
      port.value = '3000'
      port.dispatchEvent(new Event('input', { bubbles: true }))
    }`)
    await page.browser.until(
      `document.querySelector('.forward code')?.innerText === 'deputy forward ${first} 3000'`,
    )
    expect(await page.browser.run(`document.querySelector('.forward a').href`)).toBe('http://127.0.0.1:3000/')
    await page.daemon.client.cancel(first)
    await page.browser.until(`!document.querySelector('.forward')`)
    await page.goTo(`#/jobs/${second}`)
    await page.browser.until(
      `document.querySelector('.problem')?.innerText.includes('which this job needs, was cancelled')`,
    )
  })

  it('have no complaints', () => {
    expect(page.browser.complaints).toEqual([])
  })
})
