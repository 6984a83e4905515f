import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { insertFinished } from '../../bench/http.ts'
import { batchManifest } from '../../src/routing/batch-manifest.ts'
import { openStore } from '../../src/store/sqlite-store.ts'
import { BROWSER, type Browser, startBrowser } from '../support/browser.ts'
import { saveScreenshot, withoutBrowser } from '../support/console.ts'
import { CLI, newHome, removeDirectory, startDaemon, type TestDaemon } from '../support/daemon.ts'
import { createSshLab, missingForSshLab } from '../support/sshlab.ts'

const HOST = { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' }
const ATTACK = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'

const consoleUrl = ({ directory }: Pick<TestDaemon, 'directory'>): string =>
  execFileSync(process.execPath, [CLI, 'open', '--no-browser'], {
    env: { ...process.env, DEPUTY_HOME: directory },
  })
    .toString()
    .trim()

const button = (text: string): string =>
  `[...document.querySelectorAll('button')].find(b => b.innerText.startsWith(${JSON.stringify(text)}))`

describe.skipIf(withoutBrowser !== '')(`the console${withoutBrowser}`, () => {
  let daemon: TestDaemon
  let browser: Browser
  let url: string

  beforeAll(async () => {
    daemon = await startDaemon({ env: HOST })
    url = (await daemon.client.daemon()).url ?? ''
    browser = await startBrowser()
    await browser.show({ width: 1280, height: 800 })
  })
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') await saveScreenshot(browser, task.name)
  })
  afterAll(async () => {
    await browser?.close()
    await daemon.kill()
    removeDirectory(daemon.directory)
  })

  const text = () => browser.run<string>('document.body.innerText')
  const type = (selector: string, value: string) =>
    browser.run(`{
      const input = document.querySelector(${JSON.stringify(selector)})
      input.value = ${JSON.stringify(value)}
      input.dispatchEvent(new Event('input', { bubbles: true }))
    }`)
  const goTo = (hash: string) => browser.run(`location.hash = ${JSON.stringify(hash)}`)
  const finished = async (manifest: Record<string, unknown>): Promise<string> => {
    const { job_id } = await daemon.client.submit(manifest)
    await daemon.client.wait(job_id, { timeoutMs: 30_000, signal: AbortSignal.timeout(30_000) })
    return job_id
  }

  it('tells how to log in, and when a code does not work any more', async () => {
    await browser.open(url)
    await browser.until(`document.body?.innerText.includes('deputy open')`)
    const address = consoleUrl(daemon)
    await browser.open(address)
    await browser.until(`document.querySelector('.tiles')`)
    const other = await startBrowser()
    try {
      await other.open(address)
      await other.until(`document.body?.innerText.includes('used, expired or unknown')`)
    } finally {
      await other.close()
    }
  })

  it('keeps the code out of the history and the session out of cookies', async () => {
    expect(await browser.run('location.href')).not.toContain('code')
    expect(await browser.run('document.cookie')).toBe('')
  })

  it('stays logged in over a reload and in a second tab, and logs out in all of them', async () => {
    await browser.open(`${url}/#/jobs`)
    await browser.reload()
    await browser.until(`document.body?.innerText.includes('No jobs yet')`)
    const second = await browser.newTab()
    await second.open(`${url}/#/system`)
    await second.until(`document.querySelector('h1')?.innerText === 'System'`)
    await second.run(`${button('Log out')}.click()`)
    await browser.until(`document.querySelector('.login')`)
    await browser.open(consoleUrl(daemon))
    await browser.until(`document.querySelector('.tiles')`)
  })

  it('submits a job from the form, which stays in step with the manifest', async () => {
    await goTo('#/new')
    await browser.until(`document.querySelector('#field-task')`)
    await type('#field-task', 'echo first; sleep 0.5; echo second >&2; echo kept > result.txt')
    await type('#field-artifacts', 'result.txt')
    await browser.until(
      `document.querySelector('.manifest textarea').value.endsWith('artifacts:\\n  - result.txt\\n')`,
    )
    await type(
      '.manifest textarea',
      JSON.stringify({
        task: 'echo first; sleep 0.5; echo second >&2; echo kept > result.txt',
        artifacts: ['result.txt'],
        timeout: 0,
      }),
    )
    await browser.until(`document.querySelector('#field-timeout').value === '0'`)
    await type('.manifest textarea', 'task: [')
    await browser.until(`document.querySelector('.manifest .field-problem') && ${button('Submit')}.disabled`)
    await type(
      '.manifest textarea',
      'task: |\n  echo first; sleep 0.5; echo second >&2; echo kept > result.txt\nartifacts: [result.txt]\ntimeout: 0 # no time',
    )
    await browser.until(`!${button('Submit')}.disabled`)
    expect(await browser.run(`document.querySelector('.manifest textarea').value`)).toContain('# no time')
    expect(await browser.run(`document.querySelector('.as-code').textContent`)).toContain('"timeout": 0')
    await browser.run(`${button('Submit')}.click()`)
    await browser.until(`document.querySelector('#help-timeout.field-problem')`)
    // The browser itself reports the 400 of that submit.
    browser.complaints.length = 0
    await type('#field-timeout', '60')
    await browser.run(`${button('Submit')}.click()`)
    await browser.until(`document.querySelector('.output')?.innerText.includes('first')`)
    await browser.until(`document.querySelector('h1 .badge.success')`)
    expect(
      await browser.run(
        `[...document.querySelectorAll('.line')].map(l => [l.className, l.querySelector('.text').innerText])`,
      ),
    ).toEqual([
      ['line stdout', 'first'],
      ['line stderr', 'second'],
    ])
    expect(await text()).toMatch(/running[\s\S]*Runtime\s+host/)
    await browser.until(`document.querySelector('.tabs').innerText.includes('Artifacts 1')`)
  })

  it('takes files that are dropped on the form, text and bytes', async () => {
    await goTo('#/new')
    await browser.until(`document.querySelector('#field-files')`)
    await browser.run(`{
      const data = new DataTransfer()
      data.items.add(new File(['héllo\\n'], 'hello.txt'))
      data.items.add(new File([new Uint8Array([0, 255, 254])], 'bytes.bin'))
      data.items.add(new File(['away'], 'away.txt'))
      document.querySelector('form.submit').dispatchEvent(
        new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }),
      )
    }`)
    await browser.until(`document.querySelectorAll('.files li').length === 3`)
    await browser.run(`document.querySelector('[aria-label="Remove away.txt"]').click()`)
    await browser.until(`document.querySelectorAll('.files li').length === 2`)
    await type('#field-task', 'cat hello.txt; od -An -tx1 bytes.bin; ls away.txt 2>/dev/null || echo none')
    await browser.run(`${button('Submit')}.click()`)
    await browser.until(`document.querySelector('h1 .badge.success')`)
    await browser.until(`document.querySelector('.output')?.innerText.match(/héllo[^]*00 ff fe[^]*none/)`)
  })

  it('saves a manifest as a template, and fills the form with it', async () => {
    await browser.open(await daemon.client.consoleUrl({ mayApprove: true }))
    await browser.until(`document.querySelector('.tiles')`)
    await goTo('#/new')
    await browser.until(`document.querySelector('.templates')`)
    await browser.run(`document.querySelector('.templates').open = true`)
    await type('#field-task', 'echo from a template')
    await type('[aria-label="Name of the template"]', 'greeting')
    await browser.run(`${button('Save as template')}.click()`)
    await browser.until(`${button('greeting')}`)
    await type('#field-task', 'something else')
    await browser.run(`${button('greeting')}.click()`)
    await browser.until(`document.querySelector('#field-task').value === 'echo from a template'`)
    await browser.run(`document.querySelector('[aria-label="Delete greeting"]').click()`)
    await browser.until(`document.querySelector('dialog[open]')`)
    await browser.run(`document.querySelector('dialog[open] .danger').click()`)
    await browser.until(`!${button('greeting')}`)
  })

  it('goes to pages and jobs by a few letters', async () => {
    const id = await finished({ task: 'echo a needle in the hay' })
    await goTo('#/')
    await browser.until(`document.querySelector('.tiles')`)
    await browser.run(`dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))`)
    await browser.until(`document.activeElement.getAttribute('role') === 'combobox'`)
    await type('.palette input', 'needle')
    await browser.until(
      `document.querySelector('.palette [aria-selected=true]')?.innerText.includes('needle')`,
    )
    await browser.press('Enter')
    await browser.until(`location.hash === '#/jobs/${id}' && document.querySelector('dialog[open]') === null`)
    await browser.run(`${button('Go to')}.click()`)
    await browser.until(`document.activeElement.getAttribute('role') === 'combobox'`)
    await type('.palette input', 'again')
    await browser.until(
      `document.querySelector('.palette [aria-selected=true]')?.innerText.includes('again')`,
    )
    await browser.press('Enter')
    await browser.until(`/^#.jobs.[0-9a-f-]+$/.test(location.hash) && location.hash !== '#/jobs/${id}'`)
    await browser.until(`document.querySelector('h1 .badge.success')`)
  })

  it('shows colours, overwritten progress, line links and the first error of a log', async () => {
    const id = await finished({
      task: `printf '\\033[31mred\\033[0m\\n10%%\\r100%%\\n'; seq 1 200; echo 'fatal: broken'; seq 1 50; exit 3`,
    })
    await goTo(`#/jobs/${id}?line=150`)
    await browser.until(`document.querySelector('.line.marked')?.dataset.line === '150'`)
    expect(await browser.run(`document.querySelector('.fg1').innerText`)).toBe('red')
    expect(await browser.run(`document.querySelector('[data-line="2"] .text').innerText`)).toBe('100%')
    await browser.press('e')
    await browser.until(`document.querySelector('.line.marked .text').innerText === 'fatal: broken'`)
    expect(await browser.run('location.hash')).toContain('line=203')
    await browser.press('/')
    await type('.tools input', '199')
    await browser.until(`document.querySelectorAll('.line.found').length === 1`)
  })

  it('shows what jobs write as text, never as a page', async () => {
    const id = await finished({
      task: `: '${ATTACK}'; printf '\\033[31m%s\\033[0m\\n' '${ATTACK}'; echo '${ATTACK}<script>parent.pwned=1</script>' > page.html; cp page.html '<img src=x onerror=pwned=1>.txt'`,
      labels: { x: ATTACK },
      artifacts: ['*'],
    })
    await goTo(`#/jobs/${id}`)
    await browser.until(`document.querySelector('.output')?.innerText.includes('onerror')`)
    for (const tab of ['task', 'events', 'artifacts']) {
      await goTo(`#/jobs/${id}?tab=${tab}`)
      await browser.until(`document.querySelector('.tabs [aria-current]').href.endsWith('${tab}')`)
    }
    await browser.until(`document.querySelectorAll('.files .link').length === 2`)
    await browser.run(`document.querySelectorAll('.files .link')[0].click()`)
    await browser.until(`document.querySelector('.files .code')?.innerText.includes('onerror')`)
    await browser.run(`document.querySelectorAll('.files .link')[1].click()`)
    await browser.until(`document.querySelector('iframe')?.src.startsWith('blob:')`)
    expect(await browser.run(`document.querySelector('iframe').getAttribute('sandbox')`)).toBe('')
    await goTo('#/jobs')
    await browser.until(`document.querySelectorAll('.job-row').length >= 2`)
    expect(await text()).toContain('onerror')
    expect(await browser.run('window.pwned')).toBeUndefined()
    expect(await browser.run(`document.querySelectorAll('main img').length`)).toBe(0)
    // The frame may not load its picture or run its script, and Chromium says so.
    expect(
      browser.complaints.filter(
        complaint => !/blob:|about:srcdoc|page\\.html|sandboxed|img-src|x'/.test(complaint),
      ),
    ).toEqual([])
    browser.complaints.length = 0
  })

  it('shows the changes of a job, and runs it again', async () => {
    const workspace = join(daemon.directory, 'project')
    mkdirSync(workspace)
    writeFileSync(join(workspace, 'a.txt'), 'one\ntwo\n')
    const id = await finished({ task: `sed -i s/two/2/ a.txt`, workspace: { path: workspace, patch: true } })
    await goTo(`#/jobs/${id}`)
    await browser.until(`document.querySelector('.tabs a:last-child').innerText === 'Review'`)
    await browser.run(`document.querySelector('.tabs a:last-child').click()`)
    await browser.until(`document.querySelector('.diff td.added')?.innerText.trim() === '+2'`)
    const again = await finished({ task: 'echo again' })
    await goTo(`#/jobs/${again}`)
    await browser.until(button('Run again'))
    await browser.run(`${button('Run again')}.click()`)
    await browser.until(`location.hash.startsWith('#/jobs/') && !location.hash.includes('${again}')`)
    await browser.until(`document.querySelector('.output')?.innerText.includes('again')`)
  })

  it('lists jobs as they come, finds them, and cancels several at once', async () => {
    await goTo('#/jobs')
    await browser.until(`document.querySelector('.job-row')`)
    for (const name of ['alpha', 'beta'])
      await daemon.client.submit({ task: `sleep 60 # ${name}`, timeout: 90 })
    await browser.until(`document.querySelectorAll('.badge.running').length === 2`)
    await browser.until(`/^[1-9]\\d* s$/.test(document.querySelector('.ticking')?.innerText)`)
    const filters = 'status=running&q=ALPHA&age=1h&runtime=host&agent=script&origin=test'
    await goTo(`#/jobs?${filters}`)
    await browser.until(`document.querySelectorAll('.job-row').length === 1`)
    expect(await browser.run(`document.querySelector('.filter-q').value`)).toBe('ALPHA')
    await goTo('#/jobs?q=ALPHA&origin=mcp')
    await browser.until(`document.body.innerText.includes('No job matches')`)
    await goTo('#/jobs?sort=oldest')
    await browser.until(`document.querySelector('.job-row .task')?.innerText.startsWith('echo first;')`)
    await goTo('#/jobs?status=running')
    await browser.until(`document.querySelectorAll('.job-row').length === 2`)
    await browser.run(`document.querySelectorAll('.job-row input').forEach(box => box.click())`)
    await browser.until(button('Cancel 2'))
    await browser.run(`${button('Cancel 2')}.click()`)
    await browser.until(`document.body?.innerText.includes('No job matches')`)
  })

  it('draws what happened in the last hour', async () => {
    await goTo('#/')
    await browser.until(`document.querySelectorAll('.chart canvas').length === 4`)
    const { last_day } = await daemon.client.daemon()
    await browser.until(
      `document.querySelector('.chart [role=img]').ariaLabel === 'In the last 1 h, ${last_day?.success} jobs succeeded and ${last_day?.failed} failed.'`,
    )
    await browser.run(`${button('24 h')}.click()`)
    await browser.until(
      `document.querySelector('.chart [role=img]').ariaLabel.startsWith('In the last 24 h')`,
    )
    expect(await browser.run('location.hash')).toBe('#/?range=24+h')
    await browser.until(`document.querySelector('.legend')?.innerText.includes('success')`)
  })

  it('is used with the keyboard alone', async () => {
    await goTo('#/jobs')
    await browser.until(`document.querySelectorAll('.job-row').length > 3`)
    await browser.press('?')
    await browser.until(`document.querySelector('dialog[open]')?.innerText.includes('Keyboard')`)
    await browser.run(`document.querySelector('dialog[open]').close()`)
    await browser.press('j')
    await browser.press('j')
    await browser.until(
      `[...document.querySelectorAll('.job-row')].findIndex(r => r.matches('.active')) === 1`,
    )
    await browser.press('x')
    await browser.until(`document.querySelector('.job-row.active input').checked`)
    await browser.press('k')
    await browser.press('Enter')
    await browser.until(`location.hash.startsWith('#/jobs/')`)
    await browser.press('l')
    await browser.until(`location.hash === '#/jobs' && document.querySelectorAll('.job-row').length > 3`)
    await browser.press('/')
    await browser.until(`document.activeElement.matches('.filter-q')`)
  })

  it.each([360, 1280, 2560])('fits a window of %i pixels', async width => {
    await browser.show({ width, height: 740 })
    const id = (await daemon.client.list({ limit: 1 })).jobs[0]!.job_id
    const pages = [
      ['#/', 'main h1'],
      ['#/jobs', 'main h1'],
      [`#/jobs/${id}`, 'main h1'],
      [`#/jobs/${id}?tab=task`, 'main h1'],
      ['#/new', '#field-task'],
      ['#/system', 'main h1'],
    ] as const
    for (const [hash, part] of pages) {
      await goTo(hash)
      await browser.until(`document.querySelector(${JSON.stringify(part)})`)
      expect([hash, await browser.run('document.documentElement.scrollWidth <= innerWidth')]).toEqual([
        hash,
        true,
      ])
    }
    await browser.show({ width: 1280, height: 800 })
  })

  it.each(['light', 'dark'])('has nothing that axe finds fault with, in the %s theme', async theme => {
    await browser.show({ width: 1280, height: 800, dark: theme === 'dark' })
    const patched = (await daemon.client.list({ search: 'sed -i s/two/2/' })).jobs[0]!.job_id
    const logged = (await daemon.client.list({ search: 'printf', status: 'failed' })).jobs[0]!.job_id
    const pages = [
      ['#/', '.chart canvas'],
      ['#/jobs?origin=test', '.job-row'],
      [`#/jobs/${logged}`, '.line.stdout'],
      [`#/jobs/${logged}?tab=task`, '.code'],
      [`#/jobs/${logged}?tab=events`, '.events li'],
      [`#/review/${patched}?layout=split`, '.diff td.added'],
      [`#/compare?jobs=${patched},${logged}`, '.member .code'],
      ['#/new', '#field-task'],
      ['#/system', '.checks li'],
    ] as const
    await browser.run(axe.source)
    const faults = () =>
      browser.run(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
        violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))`)
    for (const [hash, part] of pages) {
      await goTo(hash)
      await browser.until(`location.hash === ${JSON.stringify(hash)} && document.querySelector('${part}')`)
      expect([hash, await faults()]).toEqual([hash, []])
    }
    await browser.run(`${button('Go to')}.click()`)
    await browser.until(`document.querySelectorAll('.palette .badge').length > 1`)
    expect(await faults()).toEqual([])
    await browser.run(`document.querySelector('dialog[open]').close()`)
    await browser.show({ width: 1280, height: 800 })
  })

  it('goes on when the daemon was restarted while it watched', async () => {
    const { job_id } = await daemon.client.submit({ task: 'echo before; sleep 4; echo after', timeout: 60 })
    await goTo(`#/jobs/${job_id}`)
    await browser.until(`document.querySelector('.output')?.innerText.includes('before')`)
    const port = new URL(url).port
    await daemon.kill()
    await browser.until(`document.querySelector('.lost')`)
    daemon = await startDaemon({ directory: daemon.directory, env: { ...HOST, DEPUTY_HTTP_PORT: port } })
    await browser.until(`document.querySelector('.output').innerText.includes('after')`)
    await browser.until(`document.querySelector('h1 .badge.success')`)
    expect(await browser.run(`document.querySelectorAll('.line').length`)).toBe(2)
    await browser.until(`document.querySelector('.lost') === null`)
  })
})

describe.skipIf(withoutBrowser !== '')(`a hundred thousand jobs${withoutBrowser}`, () => {
  it('are a list that scrolls and searches without waiting', async () => {
    const directory = newHome()
    mkdirSync(join(directory, 'state'), { recursive: true })
    const store = openStore(join(directory, 'state/deputy.db'))
    await insertFinished(store, 100_000)
    await store.close()
    const daemon = await startDaemon({ directory })
    const browser = await startBrowser()
    try {
      await browser.show({ width: 1280, height: 800 })
      await browser.open(consoleUrl(daemon))
      await browser.until(`document.querySelector('.tiles')`)
      await browser.run(`location.hash = '#/jobs'`)
      await browser.until(`document.querySelector('.job-row')`)
      for (let pages = 1; pages <= 5; pages++) {
        await browser.run(`document.querySelector('.rows').scrollTop = 1e9`)
        await browser.until(
          `parseInt(document.querySelector('.count').innerText.replace(/\\D/g, '')) >= ${pages * 1000}`,
        )
        expect(await browser.run(`document.querySelectorAll('.job-row').length`)).toBeLessThan(60)
      }
    } finally {
      await browser.close()
      await daemon.kill()
      removeDirectory(directory)
    }
  })
})

const missing = BROWSER === undefined ? 'no chromium' : missingForSshLab()

describe.skipIf(missing !== undefined)(`commands on nodes${missing ? ` (skipped: ${missing})` : ''}`, () => {
  it('are in the console: where they are, and what they are part of', async () => {
    const lab = await createSshLab({ nodes: 1, mode: 'loopback' })
    const directory = newHome()
    const [node] = lab.nodes
    const nodes = [
      {
        id: 'n1',
        host: node!.address,
        port: node!.port,
        user: lab.user,
        identity: lab.identity,
        capabilities: ['gpu'],
      },
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
      await browser.open(consoleUrl(daemon))
      await browser.until(`[...document.querySelectorAll('.node strong')].some(n => n.innerText === 'n1')`)
      await browser.run(`location.hash = '#/jobs'`)
      await browser.until(`document.querySelector('.job-row .badge.failed')`)
      // The members of a batch are folded into it.
      expect(await browser.run(`document.querySelectorAll('.job-row').length`)).toBe(1)
      await browser.run(`document.querySelector('.fold').click()`)
      await browser.until(`document.querySelectorAll('.member-row').length === 2`)
      expect(await browser.run('document.body.innerText')).not.toContain('deputy/')
      await browser.run(
        `[...document.querySelectorAll('a.task')].find(a => a.innerText === 'echo from a node').click()`,
      )
      await browser.until(`document.querySelector('.output')?.innerText.includes('from a node')`)
      expect(await browser.run('document.body.innerText')).toMatch(/Where\s+n1/)
      await browser.run(`document.querySelector('.facts a').click()`)
      await browser.until(`location.hash.endsWith('${batch.job_id}')`)
      await browser.until(`document.querySelector('h1')?.innerText.includes('2 commands in parallel')`)
      await browser.run(`location.hash = '#/system'`)
      await browser.until(`document.querySelector('.nodes')?.innerText.includes('gpu')`)
      // The load is read again every ten seconds.
      await browser.until(`document.querySelectorAll('.node .sparkline path').length === 2`)
    } finally {
      await browser.close()
      await daemon.kill()
      await lab.close()
      removeDirectory(directory)
    }
  })
})
