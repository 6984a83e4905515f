import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { clean, never, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { freePort } from '../../support/free-port.ts'

/** Forwards the calls of machines to the daemon. The first call that matches is held until it is released. */
const holdCall = async (port: number, matches: (call: string) => boolean) => {
  const reached = new AbortController()
  const released = new AbortController()
  const calls: string[] = []
  const server = createServer(async (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    const call = `${method} ${url.replace(/^.*\/jobs\/[^/]+\//, '').replace(/\?.*/, '')}`
    const body = await buffer(incoming)
    const isFirst = matches(call) && !calls.some(matches)
    calls.push(call)
    if (isFirst) {
      reached.abort()
      await aborted(released.signal)
    }
    const { 'transfer-encoding': _, ...others } = headers
    const forwarded = request(
      { port, method, path: url, headers: { ...others, 'content-length': body.length } },
      (answer: IncomingMessage) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(outgoing)
      },
    )
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    forwarded.end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    released.abort()
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, reached: aborted(reached.signal), release: () => released.abort() }
}

const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort')
}

describe.skipIf(!hasCurl)('when the daemon is replaced, the files of a VM job arrive', () => {
  /** Runs a job and replaces the daemon while the first call that matches is on its way. */
  const runThroughRestart = async (matches: (call: string) => boolean) => {
    const port = await freePort()
    const held = await holdCall(port, matches)
    const lab = await useLab({
      provider: {
        callback: { host: '127.0.0.1', port, url: held.url },
        keep: { artifactFiles: 100, artifactBytes: 2 ** 20 },
      },
    })
    const project = join(lab.directory, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'notes'), 'before\n')
    writeFileSync(join(project, '.gitignore'), '*.bin\n')
    const first = lab.makeProvider()
    const engine = await lab.open(first)
    const { job_id } = await engine.deputy.submit(
      {
        task: 'echo after > notes; head -c 200000 /dev/zero > out.bin; head -c 2000000 /dev/zero > large.bin',
        runtime: 'proxmox',
        workspace: { path: project, patch: true },
        artifacts: ['*.bin'],
      },
      'test',
    )
    await held.reached
    await engine.close()
    await first.close()
    const again = await lab.open(lab.makeProvider())
    held.release()
    const view = await again.deputy.wait(job_id, { timeoutMs: 55_000, signal: never })
    expect(view.status).toBe('success')
    const result = await again.deputy.result(job_id, {})
    await clean(lab)
    return { result }
  }

  it.each([
    ['between the upload and the end', 'POST exit'],
    ['between the list and the upload', 'PUT files'],
    ['before the list', 'POST files'],
  ])('%s', async (_, held) => {
    const { result } = await runThroughRestart(call => call === held)
    expect(result.artifacts).toMatchObject([{ path: 'out.bin', size: 200_000 }])
    expect(result.skipped_artifacts).toMatchObject([{ path: 'large.bin' }])
    expect(result.patch).not.toBeNull()
  })
})
