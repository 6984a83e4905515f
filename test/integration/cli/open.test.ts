import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestCli, type TestCli } from '../../support/cli.ts'
import { until } from '../../support/engine.ts'

let cli: TestCli
beforeAll(() => {
  cli = createTestCli({ DEPUTY_HTTP: 'true', DEPUTY_HTTP_PORT: '0' })
})
afterAll(() => cli.close())

it('prints an address that logs in once when there is no browser', async () => {
  const { code, stdout, stderr } = await cli.run(['open'], {
    env: { DISPLAY: '', WAYLAND_DISPLAY: '', BROWSER: '' },
  })
  expect([code, stderr]).toEqual([0, expect.stringContaining('No browser found')])
  const { origin, hash } = new URL(stdout.trim())
  const logIn = () =>
    fetch(`${origin}/api/console/sessions`, {
      method: 'POST',
      body: JSON.stringify({ code: hash.slice('#code='.length) }),
    })
  expect((await logIn()).status).toBe(201)
  expect((await logIn()).status).toBe(401)
})

it('starts the browser with a private file that leads there, never with the code', async () => {
  const told = join(cli.home, 'told')
  const browser = join(cli.home, 'browser')
  writeFileSync(browser, `#!/bin/sh\nprintf '%s' "$*" > '${told}.part' && mv '${told}.part' '${told}'\n`)
  chmodSync(browser, 0o755)
  const { stdout } = await cli.run(['open'], { env: { BROWSER: browser } })
  await until(async () => existsSync(told), 'the browser was started')
  const file = fileURLToPath(readFileSync(told, 'utf8'))
  expect(readFileSync(file, 'utf8')).toContain(`content="0;url=${stdout.trim()}"`)
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

it('is named by daemon status', async () => {
  expect((await cli.run(['daemon', 'status'])).stdout).toContain('deputy open')
})
