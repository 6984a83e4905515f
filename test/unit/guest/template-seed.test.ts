import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { COMPLETE, templateSeed } from '../../../src/guest/template-seed.ts'
import { readIso } from '../../support/iso-reader.ts'

const directories: string[] = []
afterEach(() => {
  for (const one of directories.splice(0)) rmSync(one, { recursive: true, force: true })
})

const AFTER = ['cloud-init clean --logs --machine-id --configs network', 'sync', 'poweroff']

/** Runs it among programs that only note how they were called. What is there, and what each does beyond that. */
const complete = (programs: Record<string, string>, { busy = false } = {}) => {
  const root = mkdtempSync(join(tmpdir(), 'deputy-image-'))
  directories.push(root)
  const bin = join(root, 'bin')
  mkdirSync(bin)
  const put = (name: string, more: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "\${0##*/} $*" >>${root}/calls\n${more}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  for (const [name, more] of Object.entries({
    'cloud-init': '',
    sync: '',
    poweroff: '',
    sleep: '',
    ...programs,
  }))
    put(name, more)
  if (!busy) writeFileSync(join(root, 'result.json'), '')
  symlinkSync('/bin/chmod', join(bin, 'chmod'))
  // Not the console of the computer that the test runs on, but one that cannot be written to.
  const script = COMPLETE.replaceAll('/dev/console', root).replaceAll('/run/cloud-init/', `${root}/`)
  const { status, stdout } = spawnSync('/bin/sh', ['-c', script], {
    env: { PATH: bin, BIN: bin },
    encoding: 'utf8',
  })
  const calls = readFileSync(join(root, 'calls'), 'utf8').trim().split('\n')
  return { status, stdout, calls: calls.map(call => call.trim()) }
}

const GIVES_AGENT = 'case "$*" in *install*) : >"$BIN/qemu-ga"; chmod +x "$BIN/qemu-ga" ;; esac'

describe('the first boot of a cloud image', () => {
  it('needs no network for what the image holds', () => {
    const { calls } = complete({ curl: '', 'qemu-ga': '', 'apt-get': '' })
    expect(calls).toEqual(AFTER)
  })

  it('installs what is missing and nothing else', () => {
    const { calls } = complete({ curl: '', 'apt-get': GIVES_AGENT })
    expect(calls).toEqual([
      'apt-get -q update',
      'apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends install qemu-guest-agent',
      ...AFTER,
    ])
  })

  it('installs with what the image has for that', () => {
    expect(complete({ curl: '', dnf: GIVES_AGENT }).calls).toEqual([
      'dnf -y install qemu-guest-agent',
      ...AFTER,
    ])
  })

  it('goes on without the lists when what it wants is to be had', () => {
    const { calls } = complete({ curl: '', 'apt-get': `[ "$2" != update ] || exit 100; ${GIVES_AGENT}` })
    expect(calls.at(-1)).toBe('poweroff')
  })

  it('tries again, and stays on when something is missing at last', () => {
    const { status, stdout, calls } = complete({ 'qemu-ga': '', 'apt-get': 'exit 100' })
    expect(status).toBe(1)
    expect(stdout).toContain('could not be installed: curl')
    expect(calls.filter(call => call.includes('install curl'))).toHaveLength(5)
    expect(calls).not.toContain('poweroff')
  })

  it('leaves a clean slate with an older cloud-init, too', () => {
    const { calls } = complete({
      curl: '',
      'qemu-ga': '',
      'cloud-init': 'case "$*" in *configs* | *machine-id*) exit 2 ;; esac',
    })
    expect(calls.slice(-3)).toEqual(['cloud-init clean --logs', 'sync', 'poweroff'])
  })

  it('leaves it when cloud-init is through', () => {
    const sleep = '[ -e "$BIN/../slept" ] && : >"$BIN/../result.json"; : >"$BIN/../slept"'
    const { calls } = complete({ curl: '', 'qemu-ga': '', sleep }, { busy: true })
    expect(calls).toEqual(['sleep 1', 'sleep 1', ...AFTER])
  })

  it('is told by a seed that cloud-init knows', () => {
    const { files } = readIso(templateSeed('one'))!
    expect(JSON.parse(files.get('meta-data')!.toString())).toEqual({ 'instance-id': 'one' })
    expect(files.get('user-data')!.toString()).toMatch(/^#cloud-config\n\{"runcmd":/)
  })
})
