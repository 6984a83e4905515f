import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { CALLBACK_PATH } from '../../../src/guest/seed.ts'
import { begin, never } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { until } from '../../support/engine.ts'
import { readIso } from '../../support/iso-reader.ts'
import type { Lab } from '../../support/proxmox-provider.ts'

/** What the machine was told: the address and its token. */
const addressOf = (lab: Lab): { url: string; token: string } => {
  const userData = readIso(lab.seeds()[0]!.data!)!.files.get('user-data')!.toString()
  const { write_files } = parse(userData) as { write_files: { path: string; content: string }[] }
  const file = write_files.find(one => one.path === CALLBACK_PATH)!
  const [url = '', token = ''] = Buffer.from(file.content, 'base64').toString().split('\n')
  return { url, token }
}

/** Calls as fast as it can on many connections, half of them with a token that is nobody's. */
const FLOOD = `
const http = require('node:http')
const [url, token, path] = process.argv.slice(1)
const agent = new http.Agent({ keepAlive: true, maxSockets: 128 })
const seen = {}
const call = mine => {
  const headers = { authorization: 'Bearer ' + (mine ? token : 'nobody-' + Math.random() + '-nobody') }
  const again = () => setImmediate(call, mine)
  http.request(url + path, { method: 'POST', agent, headers }, answer => {
    seen[answer.statusCode] = (seen[answer.statusCode] ?? 0) + 1
    answer.resume()
    answer.once('close', again)
  }).on('error', again).end()
}
for (let i = 0; i < 128; i++) call(i % 2 === 0)
setInterval(() => console.log(JSON.stringify(seen)), 200)
setTimeout(() => process.exit(0), 120000)
`

describe.skipIf(!hasCurl)('a machine that floods the listener', () => {
  it('slows only itself: another job ends as always, and its own loses nothing', async () => {
    const { lab, engine } = await begin()
    const enough = join(lab.directory, 'enough')
    const hostile = await engine.deputy.submit(
      {
        // It outlasts the other, whatever else this computer does.
        task: `i=0; while [ ! -e ${enough} ] && [ $i -lt 600 ]; do i=$((i + 1)); echo a$i; sleep 0.2; done; echo end > file`,
        artifacts: ['file'],
        runtime: 'proxmox',
      },
      'test',
    )
    // It is gone soon after the machine has read it.
    await until(() => lab.seeds().length === 1, 'there is a seed', 60_000)
    const { url, token } = addressOf(lab)
    await until(
      async () => (await engine.deputy.get(hostile.job_id)).status === 'running',
      'the first runs',
      60_000,
    )
    const path = `/guest/v1/jobs/${hostile.job_id}/heartbeat`
    const flood = spawn(process.execPath, ['-e', FLOOD, url, token, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void flood.kill('SIGKILL'))
    let seen: Record<string, number> = {}
    flood.stdout.on('data', chunk => {
      seen = JSON.parse(String(chunk).trim().split('\n').at(-1)!)
    })
    await until(() => (seen[429] ?? 0) > 100, 'it is refused', 60_000)

    const other = await engine.deputy.submit(
      {
        task: 'for i in $(seq 1 100); do echo b$i; sleep 0.01; done; cp /bin/true out',
        artifacts: ['out'],
        runtime: 'proxmox',
      },
      'test',
    )
    const view = await engine.deputy.wait(other.job_id, { timeoutMs: 90_000, signal: never })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
    const result = await engine.deputy.result(other.job_id, {})
    expect(result.output).toBe(Array.from({ length: 100 }, (_, i) => `b${i + 1}\n`).join(''))
    expect(result.artifacts).toHaveLength(1)
    // All the while it went on.
    const before = seen[429]!
    await until(() => seen[429]! > before, 'the flood is still on', 30_000)
    flood.kill('SIGKILL')
    writeFileSync(enough, '')

    const own = await engine.deputy.wait(hostile.job_id, { timeoutMs: 90_000, signal: never })
    expect(own).toMatchObject({ status: 'success', attempts: 1 })
    const kept = await engine.deputy.result(hostile.job_id, {})
    const lines = kept.output.split('\n').length - 1
    expect(lines).toBeGreaterThan(5)
    expect(kept.output).toBe(Array.from({ length: lines }, (_, i) => `a${i + 1}\n`).join(''))
    expect(kept.artifacts).toHaveLength(1)
    await until(() => lab.machines().length === 0 && lab.seeds().length === 0, 'all is clean', 60_000)
  }, 300_000)
})
