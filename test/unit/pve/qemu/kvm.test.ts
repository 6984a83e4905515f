import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kvmWorks } from '../../../support/pve/guests/qemu/kvm.ts'

describe.skipIf(process.platform === 'win32')('the trial of KVM', () => {
  let directory: string
  const program = (script: string): string => {
    const file = join(directory, 'qemu')
    writeFileSync(file, `#!/bin/sh\n${script}\n`)
    chmodSync(file, 0o755)
    return file
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'kvm-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('believes a processor that runs', async () => {
    expect(await kvmWorks(program('echo SeaBIOS; echo No bootable device.; exec sleep 60'))).toBe(true)
  })

  it('does not wait for one that hangs', async () => {
    expect(await kvmWorks(program('echo SeaBIOS; exec sleep 60'), 200)).toBe(false)
  })

  it('takes a refusal, and a missing program, for a no', async () => {
    expect(await kvmWorks(program('exit 1'))).toBe(false)
    expect(await kvmWorks(join(directory, 'absent'))).toBe(false)
  })
})
