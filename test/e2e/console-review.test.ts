import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { useConsole, withoutBrowser } from '../support/console.ts'
import { newHome } from '../support/daemon.ts'

/** Prints what the Claude CLI prints for a run with one tool call. */
const CLAUDE = `#!/bin/sh
cat <<'EOF'
{"type":"system","subtype":"init","model":"claude-test"}
{"type":"assistant","message":{"content":[{"type":"text","text":"I list <b>files</b>."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","content":"a.ts"}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"There is one."}]}}
{"type":"result","subtype":"success","num_turns":2,"total_cost_usd":0.0123,"usage":{"input_tokens":1200,"output_tokens":34}}
EOF
`

describe.skipIf(withoutBrowser !== '')(`a review in the console${withoutBrowser}`, () => {
  let workspace: string
  const page = useConsole(() => {
    const directory = newHome()
    const programs = join(directory, 'bin')
    mkdirSync(programs)
    writeFileSync(join(programs, 'claude'), CLAUDE, { mode: 0o755 })
    workspace = join(directory, 'project')
    mkdirSync(join(workspace, 'src'), { recursive: true })
    writeFileSync(join(workspace, 'src/a.ts'), 'const one = 1\nconst two = "2"\n')
    writeFileSync(join(workspace, 'b.txt'), 'same\n')
    // The user ran `deputy open` on a terminal, so this session may approve.
    return { directory, env: { PATH: `${programs}:${process.env.PATH}` }, mayApprove: true }
  })

  const changed = async (task: string, more: Record<string, unknown> = {}): Promise<string> => {
    const workspaceRequest = { path: workspace, patch: true }
    const { job_id } = await page.daemon.client.submit({ task, workspace: workspaceRequest, ...more })
    await page.daemon.client.wait(job_id, { timeoutMs: 60_000, signal: AbortSignal.timeout(60_000) })
    return job_id
  }
  const review = async (id: string): Promise<void> => {
    await page.browser.run(`location.hash = '#/review/${id}'`)
    await page.browser.until(`document.querySelector('.review .diff') && location.hash.includes('${id}')`)
  }
  const click = (text: string, within = 'main') =>
    page.browser.run(
      `[...document.querySelectorAll(${JSON.stringify(`${within} button, ${within} label`)})].find(b => b.innerText.startsWith(${JSON.stringify(text)})).click()`,
    )
  const texts = (selector: string) =>
    page.browser.run<string[]>(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map(e => e.innerText.trim())`,
    )

  it('shows the changes inline and side by side, in colours, and remembers what was viewed', async () => {
    const id = await changed(`sed -i 's/two = "2"/two = 2 \\/\\/ <b>/' src/a.ts; echo more >> b.txt`)
    await review(id)
    expect(await texts('.file-tree .name')).toEqual(['b.txt', 'a.ts'])
    expect(await texts('#file-1 td.removed')).toEqual(['-const two = "2"'])
    expect(await texts('#file-1 .added .tok-keyword')).toEqual(['const'])
    expect(await texts('#file-1 .added .tok-comment')).toEqual(['// <b>'])
    await click('Side by side')
    await page.browser.until(`document.querySelector('table.split')`)
    expect(await page.browser.run('location.hash')).toContain('layout=split')
    expect(
      await page.browser.run(
        `(row => [...row.children].map(cell => cell.innerText))([...document.querySelectorAll('#file-1 tr')].find(r => r.querySelector('.removed')))`,
      ),
    ).toEqual(['2', '-const two = "2"', '2', '+const two = 2 // <b>'])
    await click('Viewed', '#file-0')
    await page.browser.until(`document.body.innerText.includes('1 of 2 viewed')`)
    await page.browser.reload()
    await page.browser.until(`document.body?.innerText.includes('1 of 2 viewed')`)
    expect(await page.browser.run(`document.querySelector('#file-0 .diff')`)).toBe(null)
  })

  it('applies the changes to the workspace after asking, and records it', async () => {
    const id = await changed('echo approved >> b.txt')
    await review(id)
    await click('Approve and apply')
    await page.browser.until(
      `document.querySelector('dialog[open]')?.innerText.includes(${JSON.stringify(workspace)})`,
    )
    await click('Apply', 'dialog[open]')
    await page.browser.until(`document.querySelector('.verdict.applied')`)
    expect(readFileSync(join(workspace, 'b.txt'), 'utf8')).toBe('same\napproved\n')
    const events = await page.daemon.client.events(id)
    expect(events.at(-1)).toMatchObject({ type: 'review', data: { verdict: 'applied', by: 'console' } })
  })

  it('says that the patch does not apply any more, and changes nothing', async () => {
    const id = await changed('echo late >> b.txt')
    writeFileSync(join(workspace, 'b.txt'), 'written meanwhile\n')
    await review(id)
    await click('Approve and apply')
    await page.browser.until(`document.querySelector('dialog[open] .danger')`)
    await click('Apply', 'dialog[open]')
    await page.browser.until(`document.querySelector('.problem')?.innerText.includes('does not apply')`)
    expect(readFileSync(join(workspace, 'b.txt'), 'utf8')).toBe('written meanwhile\n')
    // The browser itself reports the 409.
    page.browser.complaints.length = 0
  })

  it('requests changes from the agent with a comment, as a job that has the first ones', async () => {
    const agent = {
      agentType: 'custom',
      agent: { command: 'cp .deputy/previous.patch seen.txt 2>/dev/null || echo first > seen.txt' },
    }
    const id = await changed('write seen.txt', agent)
    await review(id)
    await page.browser.run(`{
      const field = document.querySelector('.decision textarea')
      field.value = 'use "quotes" please'
      field.dispatchEvent(new Event('input', { bubbles: true }))
    }`)
    await click('Request changes')
    await page.browser.until(`document.querySelector('.verdict.handed_back a')`)
    await page.browser.run(`document.querySelector('.verdict a').click()`)
    await page.browser.until(`document.querySelector('h1 .badge.success')`)
    const next = (await page.browser.run<string>('location.hash')).split('/').at(-1)!
    await page.browser.run(`location.hash = '#/jobs/${next}?tab=task'`)
    await page.browser.until(`document.querySelector('.code')?.innerText.includes('use "quotes" please')`)
    await review(next)
    // Neither the patch that it was given nor its directory is among its own changes.
    expect(await texts('.file-tree .name')).toEqual(['seen.txt'])
    expect((await texts('td.added')).join('\n')).toContain('++first')
  })

  it('lets a session that is not of a terminal copy the command, and not write', async () => {
    const id = await changed('echo x > c.txt')
    const other = await startBrowser()
    try {
      await other.open(await page.daemon.client.consoleUrl({ mayApprove: false }))
      await other.until(`document.querySelector('.tiles')`)
      await other.run(`location.hash = '#/review/${id}'`)
      await other.until(
        `document.querySelector('.decision .command')?.innerText.includes('deputy patch --apply ${workspace} ${id}')`,
      )
      const status = await other.run(`fetch('/api/jobs/${id}/review', {
        method: 'POST',
        headers: { authorization: 'Bearer ' + sessionStorage['deputy-session'], 'content-type': 'application/json' },
        body: JSON.stringify({ action: 'apply' }),
      }).then(response => response.status)`)
      expect(status).toBe(403)
    } finally {
      await other.close()
    }
  })

  it('shows what an agent said and did, and what it cost', async () => {
    const { job_id } = await page.daemon.client.submit({
      task: 'list the files',
      agentType: 'claude',
      env: { ANTHROPIC_API_KEY: 'none' },
      network: 'full',
    })
    await page.browser.run(`location.hash = '#/jobs/${job_id}?tab=conversation'`)
    await page.browser.until(`document.querySelector('h1 .badge.success')`)
    await page.browser.until(`document.querySelectorAll('.said').length === 2`)
    expect(await texts('.said')).toEqual(['I list <b>files</b>.', 'There is one.'])
    expect(await texts('.tool-call code')).toEqual(['Bash: ls', 'a.ts'])
    await page.browser.until(`/Cost\\s+\\$0\\.0123/.test(document.querySelector('.facts').innerText)`)
    expect(await texts('.facts')).toEqual([expect.stringMatching(/Tokens\s+1,200 in, 34 out/)])
  })

  it('compares jobs with the same task and picks one', async () => {
    const ids = await Promise.all([
      changed('# attempt\necho one; echo 1 > pick.txt'),
      changed('# attempt\necho two; seq 2 > pick.txt; exit 3'),
    ])
    await page.browser.run(`location.hash = '#/jobs?q=attempt'`)
    await page.browser.until(`document.querySelectorAll('.job-row').length === 2`)
    await page.browser.run(`document.querySelectorAll('.job-row input').forEach(box => box.click())`)
    await page.browser.until(`document.querySelector('.actions')?.innerText.includes('Compare')`)
    await click('Compare', '.actions')
    await page.browser.until(`document.body.innerText.includes('1 file, +2 −0')`)
    await page.browser.until(`document.body.innerText.includes('1 file, +1 −0')`)
    expect((await texts('.member .code')).sort()).toEqual(['one', 'two'])
    expect((await texts('.member .facts div:first-child')).sort()).toEqual(['Exit\n0', 'Exit\n3'])
    await page.browser.run(
      `[...document.querySelectorAll('.member')].find(m => m.innerText.includes('+1 −0')).querySelector('.primary').click()`,
    )
    await page.browser.until(`document.querySelector('dialog[open] .danger')`)
    await click('Pick', 'dialog[open]')
    await page.browser.until(`location.hash === '#/review/${ids[0]}'`)
    expect((await page.daemon.client.events(ids[1])).at(-1)).toMatchObject({ data: { verdict: 'rejected' } })
    expect(page.browser.complaints).toEqual([])
  })
})
