import { execFileSync, spawn } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { CLI, newHome, startDaemon } from '../../support/daemon.ts'
import { removeDirectory, until } from '../../support/engine.ts'

const has = (tool: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

/** `deputy dev pve` as a user starts it; its settings are what it prints. */
const startPve = async (): Promise<Record<string, string>> => {
  const child = spawn(process.execPath, [CLI, 'dev', 'pve'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    err += chunk
  })
  const gone = new Promise(resolve => child.once('exit', resolve))
  cleanups.push(async () => {
    child.kill('SIGTERM')
    await gone
  })
  await until(() => err.includes('Serving'), 'the emulated cluster serves', 30_000)
  return Object.fromEntries([...out.matchAll(/^export (\w+)='(.*)'$/gm)].map(match => [match[1]!, match[2]!]))
}

describe.skipIf(!has('curl'))('the product with an emulated cluster', () => {
  it('runs a job on it, survives kill -9 of the daemon, and leaves nothing behind', async () => {
    const settings = { ...(await startPve()), CALLBACK_PORT: '28766' }
    const directory = newHome()
    cleanups.push(() => removeDirectory(directory))
    const first = await startDaemon({ directory, env: settings })
    cleanups.push(() => first.kill())
    const { job_id } = await first.client.submit({
      task: 'for i in $(seq 1 40); do echo line $i; sleep 0.1; done',
      runtime: 'proxmox',
    })
    await until(async () => (await first.client.get(job_id)).output_bytes > 20, 'it prints', 30_000)
    await first.kill('SIGKILL')
    const second = await startDaemon({ directory, env: settings })
    cleanups.push(() => second.kill())
    await until(
      async () => ['success', 'failed'].includes((await second.client.get(job_id)).status),
      'it ends',
      40_000,
    )
    const result = await second.client.result(job_id, {})
    expect(result.status).toBe('success')
    expect(result.output).toBe(Array.from({ length: 40 }, (_, i) => `line ${i + 1}\n`).join(''))
    await until(async () => (await second.client.machines()).length === 0, 'the machine is gone', 30_000)
  })

  it('says what is wrong with the settings of a cluster, and still runs other jobs', async () => {
    const directory = newHome()
    cleanups.push(() => removeDirectory(directory))
    const daemon = await startDaemon({ directory, env: { PROXMOX_HOST: 'pve1', PROXMOX_USER: 'root' } })
    cleanups.push(() => daemon.kill())
    const runtimes = await daemon.client.doctor()
    expect(runtimes.find(runtime => runtime.runtime === 'proxmox')).toMatchObject({
      ready: false,
      checks: [{ status: 'failed', message: expect.stringContaining('credentials') }],
    })
    await expect(daemon.client.submit({ task: 'true', runtime: 'proxmox' })).rejects.toThrow(/credentials/)
  })
})

it('prints how to prepare a cluster without reaching one', () => {
  const home = newHome()
  cleanups.push(() => removeDirectory(home))
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [CLI, 'proxmox', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, DEPUTY_HOME: home },
    })
  expect(run('setup', '--template', '9000', '--seeds', 'seeds')).toMatch(
    /pveum acl modify \/storage\/seeds --tokens 'deputy@pve!deputy'/,
  )
  expect(run('template')).toContain('qm template 9000')
})
