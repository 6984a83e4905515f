import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { batchManifest } from '../../src/routing/batch-manifest.ts'
import { BROWSER, type Browser, startBrowser } from '../support/browser.ts'
import { newHome, removeDirectory, startDaemon, type TestDaemon } from '../support/daemon.ts'
import { createSshLab, missingForSshLab } from '../support/sshlab.ts'

const reason = BROWSER === undefined ? ' (skipped: no chromium in the PATH to look at it with)' : ''

describe.skipIf(BROWSER === undefined)(`the web page${reason}`, () => {
  let daemon: TestDaemon
  let browser: Browser
  let url: string
  let token: string

  beforeAll(async () => {
    daemon = await startDaemon({ env: { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' } })
    url = (await daemon.client.daemon()).url ?? ''
    token = readFileSync(join(daemon.home.stateDir, 'token'), 'utf8').trim()
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await daemon.kill()
    removeDirectory(daemon.directory)
  })

  const picture = async (name: string): Promise<void> => {
    const { DEPUTY_TEST_PICTURES: directory } = process.env
    if (directory !== undefined) writeFileSync(join(directory, `${name}.png`), await browser.screenshot())
  }
  const text = () => browser.run<string>('document.body.innerText')

  it('asks for the token, and for another one when it is wrong', async () => {
    await browser.open(url)
    await browser.until(`document.querySelector('input[type=password]')`)
    await picture('login')
    await browser.open(`${url}/#token=${'x'.repeat(43)}`)
    await browser.until(`document.body.innerText.includes('The bearer token is not valid')`)
    // The browser itself reports the 401 of the wrong token.
    browser.complaints.length = 0
  })

  it('takes the token from the address and removes it there', async () => {
    await browser.open(`${url}/#token=${token}`)
    await browser.until(`document.querySelector('#daemon').innerText.includes('running')`)
    expect(await browser.run('location.href')).not.toContain(token)
    expect(await browser.run('document.cookie')).toBe('')
  })

  it('runs a job: submit, live output, artifacts', async () => {
    await browser.until(`document.querySelector('textarea')`)
    const manifest = {
      task: 'echo first; sleep 0.5; echo second >&2; echo kept > result.txt',
      artifacts: ['result.txt'],
      labels: { team: 'web' },
    }
    await browser.run(
      `document.querySelector('textarea').value = ${JSON.stringify(JSON.stringify(manifest))}`,
    )
    await browser.run(`document.querySelector('form.submit button').click()`)
    await browser.until(`document.querySelector('.output')?.innerText.includes('first')`)
    await browser.until(`document.querySelector('.badge.success')`)
    expect(await browser.run(`document.querySelector('.output').innerText`)).toBe('first\nsecond\n')
    expect(await browser.run(`document.querySelector('.output .stderr').innerText`)).toBe('second\n')
    await browser.until(`document.body.innerText.includes('result.txt')`)
    await picture('job')
    const fetched = `fetch(location.hash.replace('#/jobs', '/api/jobs') + '/artifacts/result.txt', {
      headers: { authorization: 'Bearer ' + sessionStorage.getItem('deputy-token') } }).then(r => r.text())`
    expect(await browser.run(fetched)).toBe('kept\n')
  })

  it('shows what a job prints as text, never as a page', async () => {
    const attack = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
    const { job_id } = await daemon.client.submit({
      task: `: '${attack}'; printf '\\033[31m%s\\033[0m\\n' '${attack}'`,
      labels: { x: attack },
    })
    await browser.run(`location.hash = '#/jobs/${job_id}'`)
    await browser.until(`document.querySelector('.badge.success')`)
    await browser.until(`document.querySelector('.output')?.innerText.includes('onerror')`)
    expect(await browser.run(`document.querySelector('.output').innerText`)).toBe(`${attack}\n`)
    await browser.run(`location.hash = '#/'`)
    await browser.until(`document.querySelectorAll('tbody tr').length >= 2`)
    expect(await text()).toContain('onerror')
    expect(await browser.run('window.pwned')).toBeUndefined()
    expect(await browser.run(`document.querySelectorAll('img').length`)).toBe(0)
    await picture('jobs')
  })

  it('shows new jobs and their end by itself, and cancels one', async () => {
    const { job_id } = await daemon.client.submit({ task: 'sleep 60', timeout: 90 })
    await browser.until(`document.querySelector('tbody .badge.running')`)
    await browser.run(`location.hash = '#/jobs/${job_id}'`)
    await browser.until(`[...document.querySelectorAll('button')].some(b => b.innerText === 'Cancel')`)
    await browser.run(`[...document.querySelectorAll('button')].find(b => b.innerText === 'Cancel').click()`)
    await browser.until(`document.querySelector('.badge.cancelled')`)
  })

  it('tells what is wrong with a manifest', async () => {
    await browser.run(`location.hash = '#/'`)
    await browser.until(`document.querySelector('textarea')`)
    await browser.run(`document.querySelector('textarea').value = '{"task": "x", "agent_type": "script"}'`)
    await browser.run(`document.querySelector('form.submit button').click()`)
    await browser.until(`document.querySelector('.problem')?.innerText.includes("did you mean 'agentType'")`)
    // The browser itself reports the 400 of that submit.
    expect(browser.complaints.filter(complaint => !complaint.includes('400'))).toEqual([])
  })
})

const missing = BROWSER === undefined ? 'no chromium' : missingForSshLab()

describe.skipIf(missing !== undefined)(`commands on nodes${missing ? ` (skipped: ${missing})` : ''}`, () => {
  it('are on the web page: where they are, and what they are part of', async () => {
    const lab = await createSshLab({ nodes: 1, mode: 'loopback' })
    const directory = newHome()
    const [node] = lab.nodes
    const nodes = [
      { id: 'n1', host: node!.address, port: node!.port, user: lab.user, identity: lab.identity },
    ]
    mkdirSync(join(directory, 'config'), { recursive: true })
    writeFileSync(
      join(directory, 'config/config.yaml'),
      JSON.stringify({ cluster: { nodes, ssh: { configFile: 'none' } } }),
    )
    const daemon = await startDaemon({ directory })
    const browser = await startBrowser()
    try {
      const commands = ['echo from a node', 'false']
      const batch = await daemon.client.submit(batchManifest({ commands, requires: {}, timeout: 60 }))
      const token = readFileSync(join(daemon.home.stateDir, 'token'), 'utf8').trim()
      await browser.open(`${(await daemon.client.daemon()).url}/#token=${token}`)
      await browser.until(`document.querySelectorAll('tbody .badge.failed').length === 2`)
      expect(await browser.run('document.body.innerText')).not.toContain('deputy/')
      await browser.run(
        `[...document.querySelectorAll('a')].find(a => a.innerText === 'echo from a node').click()`,
      )
      await browser.until(`document.querySelector('.output')?.innerText.includes('from a node')`)
      expect(await browser.run('document.body.innerText')).toContain('Where\nn1')
      await browser.run(`document.querySelector('dl a').click()`)
      await browser.until(`location.hash.endsWith('${batch.job_id}')`)
      await browser.until(`document.querySelector('h1')?.innerText.includes('2 commands in parallel')`)
    } finally {
      await browser.close()
      await daemon.kill()
      await lab.close()
      removeDirectory(directory)
    }
  })
})
