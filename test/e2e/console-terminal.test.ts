import axe from 'axe-core'
import { describe, expect, it } from 'vitest'
import { SCREEN, terminalOf, useConsole, withoutBrowser } from '../support/console.ts'
import { until } from '../support/engine.ts'

describe.skipIf(withoutBrowser !== '')(`a terminal in the console${withoutBrowser}`, () => {
  const page = useConsole(() => ({ mayApprove: true }))
  const { connected, typeLine } = terminalOf(() => page.browser)

  it('is not part of the first load', async () => {
    const loaded = await page.browser.run<string[]>(
      `performance.getEntriesByType('resource').map(({ name }) => name).filter(name => name.includes('/web/'))`,
    )
    for (const name of loaded.filter(name => name.endsWith('.js')))
      expect(await (await fetch(name)).text(), name).not.toContain('xterm-helper-textarea')
  })

  it('opens beside a running job, takes keys and knows the size of its window', async () => {
    const { job_id } = await page.daemon.client.submit({ task: 'echo begun; exec sleep 600' })
    await page.goTo(`#/jobs/${job_id}`)
    await page.browser.until(
      `[...document.querySelectorAll('a.button')].some(link => link.innerText === 'Terminal')`,
    )
    await page.browser.run(
      `[...document.querySelectorAll('a.button')].find(link => link.innerText === 'Terminal').click()`,
    )
    await connected()
    await typeLine('echo $((6*7))-answer; stty size')
    await page.browser.until(`(${SCREEN}).includes('42-answer')`)
    await page.browser.until(`/\\n\\d+ \\d+/.test(${SCREEN})`)
    const columns = async (): Promise<number> =>
      Number(
        /(\d+)\s*$/.exec(
          await page.browser.run<string>(`[...(${SCREEN}).matchAll(/^\\d+ \\d+/gm)].at(-1)[0]`),
        )?.[1],
      )
    const wide = await columns()
    expect(wide).toBeGreaterThan(80)
    await page.browser.show({ width: 480, height: 800 })
    await until(async () => {
      await typeLine('stty size')
      return (await columns()) < wide
    }, 'the program is told the new size')
    await page.browser.show({ width: 1280, height: 800 })
    const events = await page.daemon.client.events(job_id)
    expect(events.some(({ type }) => type === 'session')).toBe(true)
    await page.browser.run(axe.source)
    const faults = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))`
    expect(await page.browser.run(faults)).toEqual([])
    await typeLine('exit 3')
    await page.browser.until(`document.querySelector('[role=status]').innerText === 'ended with 3'`)
    expect((await page.daemon.client.get(job_id)).status).toBe('running')
    await page.daemon.client.cancel(job_id)
  })

  it('opens in a kept machine, as a job of its own that ends with it', async () => {
    const { job_id } = await page.daemon.client.submit({ task: 'echo kept > file', lifecycle: 'persistent' })
    // The machine of the job before may still be there.
    await until(async () => {
      const machines = await page.daemon.client.machines()
      return machines.length === 1 && machines[0]!.job_id === job_id && machines[0]!.state === 'kept'
    }, 'only the kept machine is left')
    await page.goTo('#/system')
    await page.browser.until(`document.querySelector('.machine a.button')`)
    await page.browser.run(`document.querySelector('.machine a.button').click()`)
    await connected()
    await typeLine('cat file; pwd')
    await page.browser.until(`(${SCREEN}).includes('kept')`)
    await page.goTo('#/jobs')
    // Leaving the page closes the terminal, and its job ends.
    await until(async () => {
      const { jobs } = await page.daemon.client.list({})
      return jobs.every(({ status }) => !['pending', 'provisioning', 'running'].includes(status))
    }, 'the job of the terminal ends')
    const machines = await page.daemon.client.machines()
    expect(machines.map(({ state }) => state)).toEqual(['kept'])
  })

  it('says what is wrong when the machine is gone', async () => {
    await page.goTo('#/terminal/0198a000-0000-7000-8000-000000000000')
    await page.browser.until(`document.querySelector('.problem')?.innerText.includes('is gone')`)
    await page.browser.until(`document.querySelector('[role=status]').innerText === 'not connected'`)
  })

  it('breaks no rule of the content security policy', () => {
    expect(page.browser.complaints).toEqual([])
  })
})

describe.skipIf(withoutBrowser !== '')(`a terminal in a sandbox${withoutBrowser}`, () => {
  const page = useConsole(() => ({ mayApprove: true, env: { DEPUTY_RUNTIME: 'sandbox' } }))
  const { connected, typeLine, shows } = terminalOf(() => page.browser)

  it('is inside it, and ends with its status', async ({ skip }) => {
    const { client } = page.daemon
    const sandbox = (await client.doctor()).find(({ runtime }) => runtime === 'sandbox')
    skip(sandbox?.ready !== true, 'this computer cannot make a sandbox')
    const { job_id } = await client.submit({ task: 'echo here > file; exec sleep 600' })
    await until(async () => (await client.get(job_id)).status === 'running', 'the job runs', 60_000)
    const { machine_id } = await client.get(job_id)
    await page.goTo(`#/terminal/${machine_id}`)
    await connected()
    await typeLine('until cat file; do sleep 0.1; done; echo $((6*7))-in-$PWD; ls /root | wc -l')
    await shows('42-in-/work')
    await typeLine('exit 4')
    await page.browser.until(`document.querySelector('[role=status]').innerText === 'ended with 4'`)
    expect((await client.get(job_id)).status).toBe('running')
    await client.cancel(job_id)
    expect(page.browser.complaints).toEqual([])
  })
})
