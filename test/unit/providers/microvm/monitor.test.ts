import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openMonitor } from '../../../../src/providers/microvm/monitor.ts'

let directory: string
let server: Server
let path: string
const never = new AbortController().signal

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-monitor-'))
  path = join(directory, 'monitor.sock')
})
afterEach(() => {
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

/** A QEMU that answers each command by a function; it answers nothing for undefined. */
const serve = (answer: (name: string, socket: Socket) => object | undefined): Promise<void> => {
  server = createServer(socket => {
    const send = (line: object) => socket.write(`${JSON.stringify(line)}\n`)
    socket.on('error', () => undefined)
    send({ QMP: { version: {} } })
    let held = ''
    socket.on('data', chunk => {
      const lines = `${held}${chunk}`.split('\n')
      held = lines.pop()!
      for (const line of lines) {
        const { execute } = JSON.parse(line) as { execute: string }
        send({ event: 'STOP' })
        const said = execute === 'qmp_capabilities' ? { return: {} } : answer(execute, socket)
        if (said !== undefined) send(said)
      }
    })
  })
  return new Promise(resolve => server.listen(path, resolve))
}

describe('the control connection of QEMU', () => {
  it('waits until QEMU listens, and tells answers from events', async () => {
    const opening = openMonitor(path, never)
    await serve(name => ({ return: { name } }))
    const monitor = await opening
    expect(await Promise.all([monitor.command('a'), monitor.command('b')])).toEqual([
      { name: 'a' },
      { name: 'b' },
    ])
    monitor.close()
  })

  it('names the command that was refused, and why', async () => {
    await serve(() => ({ error: { desc: 'no such device' } }))
    const monitor = await openMonitor(path, never)
    await expect(monitor.command('eject')).rejects.toThrow('QEMU refused eject: no such device.')
    monitor.close()
  })

  it('follows a migration to its end', async () => {
    const states = [{ status: 'active' }, { status: 'completed' }, { status: 'failed', 'error-desc': 'torn' }]
    await serve(() => ({ return: states.shift() }))
    const monitor = await openMonitor(path, never)
    await monitor.migrated()
    expect(states).toHaveLength(1)
    await expect(monitor.migrated()).rejects.toThrow('torn')
    monitor.close()
  })

  it('fails open commands when QEMU ends or nobody waits any more', async () => {
    await serve((name, socket) => {
      if (name === 'quit') socket.destroy()
      return undefined
    })
    const monitor = await openMonitor(path, never)
    await expect(monitor.command('quit')).rejects.toThrow('QEMU ended')
    await expect(monitor.command('stop')).rejects.toThrow('QEMU ended')
    const abort = new AbortController()
    const other = await openMonitor(path, abort.signal)
    const stopping = other.command('stop')
    abort.abort(new Error('given up'))
    await expect(stopping).rejects.toThrow('given up')
    await expect(openMonitor(path, abort.signal)).rejects.toThrow('given up')
  })
})
