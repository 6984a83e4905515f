import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createGuestLinks } from '../../../../src/providers/microvm/guest-links.ts'
import { createSnapshots } from '../../../../src/providers/microvm/snapshots.ts'

const size = { cpus: 1, memory: 2 ** 20, disk: 2 ** 20, processes: 10 }
const never = new AbortController().signal

it('a snapshot that cannot be made is reported once, and VMs boot', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'deputy-snapshots-'))
  const logged: string[] = []
  const snapshots = createSnapshots({
    ...{ stateDir, imagesDir: stateDir, links: createGuestLinks(stateDir) },
    log: message => void logged.push(message),
  })
  const directory = join(stateDir, 'absent')
  const image = { name: 'default', directory, kernel: '', contents: '', createdAt: 1, bytes: 0 }
  try {
    expect(await snapshots.of(image, size, never)).toBeUndefined()
    expect(await snapshots.of(image, size, never)).toBeUndefined()
    expect(logged).toHaveLength(1)
    expect(await snapshots.of({ ...image, createdAt: 2 }, size, never)).toBeUndefined()
    expect(logged).toHaveLength(2)
  } finally {
    snapshots.close()
    rmSync(stateDir, { recursive: true })
  }
})
