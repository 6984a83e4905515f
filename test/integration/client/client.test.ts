import { mkdtempSync, readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect, type DeputyClient, DeputyError, type Forward } from 'deputy-mcp'
import { afterEach, describe, expect, it } from 'vitest'
import { connect as connectControl } from '../../../src/client/daemon-client.ts'
import { useDaemons } from '../../support/daemon.ts'

const startDaemon = useDaemons()
const clients: DeputyClient[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

const open = async (options: Parameters<typeof connect>[0]): Promise<DeputyClient> => {
  const client = await connect(options)
  clients.push(client)
  return client
}

const own = async (): Promise<DeputyClient> => {
  const { directory } = await startDaemon()
  return open({ env: { ...process.env, DEPUTY_HOME: directory } })
}

describe('the TypeScript client', () => {
  it('runs a script and returns what it did', async () => {
    const deputy = await own()
    const result = await deputy.run('echo out; echo err >&2; exit 3')
    expect(result).toMatchObject({ status: 'failed', exit_code: 3, origin: 'client' })
    expect(result.output).toContain('out\n')
  })

  it('brings artifacts back', async () => {
    const deputy = await own()
    const job = await deputy.submit({ task: 'printf made > made.txt', artifacts: ['*.txt'] })
    expect(await job.wait()).toMatchObject({ status: 'success' })
    expect((await job.artifacts()).map(({ path }) => path)).toEqual(['made.txt'])
    expect(Buffer.from(await job.readArtifact('made.txt')).toString()).toBe('made')
    await job.delete()
    await expect(job.status()).rejects.toMatchObject({ code: 'not_found' })
  })

  it('follows output while the job runs, across a kill of the daemon', async () => {
    const { directory, home, kill } = await startDaemon()
    const deputy = await open({ env: { ...process.env, DEPUTY_HOME: directory, DEPUTY_HTTP_PORT: '0' } })
    const job = await deputy.submit('echo first; sleep 2; echo second')
    let text = ''
    for await (const output of job.follow()) {
      text += output.text
      if (text === 'first\n') await kill('SIGKILL')
    }
    expect(text).toBe('first\nsecond\n')
    expect(await job.result()).toMatchObject({ status: 'success' })
    await connectControl(home).stopDaemon()
  })

  it('cancels the job when the signal is aborted, and still returns its result', async () => {
    const deputy = await own()
    const controller = new AbortController()
    const result = await deputy.run('echo started; sleep 600', {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    })
    expect(result.status).toBe('cancelled')
    await expect(deputy.run('true', { signal: controller.signal })).rejects.toThrow()
  })

  it('runs another command in a kept machine', async () => {
    const deputy = await own()
    const job = await deputy.submit({ task: 'echo 1 > kept', lifecycle: 'persistent', lease: 60 })
    await job.wait()
    const second = await job.exec('cat kept')
    expect((await second.result()).output).toBe('1\n')
    expect(await deputy.machines()).toHaveLength(1)
  })

  it('opens a terminal in the machine of a job, copies files and forwards ports', async () => {
    const deputy = await own()
    const job = await deputy.submit('echo up; exec sleep 1000')
    for await (const output of job.follow()) if (output.text.includes('up')) break
    const shell = await job.shell({
      command: ['sh', '-c', 'stty size; read -r line; echo "got $line" | tee heard; exit 4'],
      terminal: { columns: 70, rows: 20 },
    })
    const shown = text(shell.stream)
    shell.stream.write('typed\r')
    expect(await shown).toMatch(/20 70\r\n[\s\S]*got typed/)
    expect(await shell.exit).toBe(4)

    const here = mkdtempSync(join(tmpdir(), 'deputy-client-'))
    expect(await job.download('heard', here)).toMatchObject({ files: 1, bytes: 10, skipped: [] })
    await job.upload(join(here, 'heard'), 'copy/of-it')
    await job.download('copy', join(here, 'copy'))
    expect(readFileSync(join(here, 'copy/of-it'), 'utf8')).toBe('got typed\n')
    await expect(job.download('heard', here)).rejects.toMatchObject({ code: 'conflict' })

    let forward: Forward | undefined
    const refused = new Promise<DeputyError>(resolve => {
      void job.forward({ port: 9, onError: resolve }).then(made => {
        forward = made
        connectTcp(made.localPort, '127.0.0.1').on('error', () => {})
      })
    })
    expect(await refused).toMatchObject({ code: 'unavailable', message: expect.stringContaining('port 9 ') })
    await forward?.close()
    await job.cancel()
    await job.wait()
    await expect(job.upload(join(here, 'heard'), 'x')).rejects.toBeInstanceOf(DeputyError)
  }, 120_000)

  it('reaches a daemon over HTTP with a token, and says what is wrong without one', async () => {
    const { client, home } = await startDaemon()
    const { url } = await client.daemon()
    const token = readFileSync(join(home.stateDir, 'token'), 'utf8').trim()
    const deputy = await open({ url: url!, token })
    expect(await deputy.run('echo over http')).toMatchObject({ status: 'success', output: 'over http\n' })
    const stranger = await open({ url: url! })
    await expect(stranger.jobs()).rejects.toMatchObject({ code: 'unauthorized' })
    await expect(connect({ url: 'nowhere' })).rejects.toThrow("Invalid URL 'nowhere'")
  })

  it('rejects with a DeputyError that names the value and the next step', async () => {
    const deputy = await own()
    const failure = await deputy.submit({ task: 'true', runtime: 'nowhere' }).catch(error => error)
    expect(failure).toBeInstanceOf(DeputyError)
    expect(failure.message).toContain('nowhere')
    expect(failure.hint).toBeTruthy()
  })
})
