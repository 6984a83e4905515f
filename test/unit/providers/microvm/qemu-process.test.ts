import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/jobs/ids.ts'
import { killQemu, processesOf } from '../../../../src/providers/microvm/qemu-process.ts'

/** Becomes another program again and again, as the start of a VM does: unshare, sh, setpriv, bwrap. */
const AGAIN = 'exec sh -c "$0" "$0" "$1"'

describe.skipIf(process.platform !== 'linux')('the processes of a VM', () => {
  it('are found while they change their program, and killed', async () => {
    const id = newId()
    const child = spawn('sh', ['-c', AGAIN, AGAIN, `deputy-microvm-${id}`], { stdio: 'ignore' })
    const ended = once(child, 'exit')
    try {
      for (let look = 0; look < 60; look++) expect(await processesOf(id)).toEqual([child.pid])
      await killQemu(id, AbortSignal.timeout(60_000))
      expect(await ended).toEqual([null, 'SIGKILL'])
      expect(await processesOf(id)).toEqual([])
    } finally {
      child.kill('SIGKILL')
    }
  })
})
