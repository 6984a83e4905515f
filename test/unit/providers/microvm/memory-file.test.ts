import { fstatSync, readSync, writeSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createMemoryFile } from '../../../../src/providers/microvm/memory-file.ts'

const never = new AbortController().signal

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')(
  'a file for the memory of VMs',
  () => {
    it('can be written until it is sealed, and read afterwards', async () => {
      const memory = await createMemoryFile(8192, never)
      const { fd } = memory
      expect(fstatSync(fd).size).toBe(8192)
      writeSync(fd, 'before', 4096)
      await memory.seal()
      expect(() => writeSync(fd, 'after', 4096)).toThrow('EPERM')
      const read = Buffer.alloc(6)
      readSync(fd, read, { position: 4096 })
      expect(read.toString()).toBe('before')
      memory.close()
      memory.close()
      expect(() => memory.fd).toThrow('renewed')
    })

    it('says why it cannot be made', async () => {
      await expect(createMemoryFile(-1, never)).rejects.toThrow(/truncate/)
      await expect(createMemoryFile(4096, AbortSignal.abort())).rejects.toThrow(/abort/i)
    })
  },
)
