import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPctExec } from '../../../src/mcp/tools/proxmox/ssh/pct-exec.ts'
import { parseSshSettings } from '../../../src/mcp/tools/proxmox/ssh/ssh-settings.ts'
import { until } from '../../support/engine.ts'
import { createSshLab, missingForSshLab, type SshLab } from '../../support/sshlab.ts'

const missing = missingForSshLab()

describe.skipIf(missing !== undefined)(
  `commands in containers over a real sshd${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let lab: SshLab
    let stateDir: string
    let pct: string

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 1, mode: 'loopback' })
      stateDir = mkdtempSync(join(tmpdir(), 'deputy-lxc-'))
      pct = join(lab.directory, 'pct')
      // As pct does: the words after -- are run, nothing else.
      writeFileSync(
        pct,
        '#!/bin/sh\n[ "$1" = exec ] && [ "$2" = 101 ] && [ "$3" = -- ] || exit 99\nshift 3\nexec "$@"\n',
      )
      chmodSync(pct, 0o755)
    })
    afterAll(async () => {
      await lab?.close()
      if (stateDir) rmSync(stateDir, { recursive: true, force: true })
    })

    const fingerprint = () => {
      const line = execFileSync('ssh-keygen', ['-lf', join(lab.directory, 'n1', 'host_key.pub')], {
        encoding: 'utf8',
      })
      return line.split(' ')[1]!
    }
    const settings = (own: Record<string, string> = {}) => {
      const node = lab.nodes[0]!
      return parseSshSettings({
        PROXMOX_SSH_ENABLED: 'true',
        PROXMOX_SSH_NODE: 'pve1',
        PROXMOX_SSH_HOST: node.address,
        PROXMOX_SSH_PORT: String(node.port),
        PROXMOX_SSH_USER: lab.user,
        PROXMOX_SSH_KEY_PATH: lab.identity,
        PROXMOX_SSH_HOST_KEY_FINGERPRINT: fingerprint(),
        ...own,
      })!
    }
    const run = (
      command: string,
      { timeoutS = 20, signal = new AbortController().signal, own = {}, node = 'pve1' } = {},
    ) =>
      createPctExec({ settings: settings(own), stateDir, pct })({
        node,
        vmid: 101,
        command,
        timeoutS,
        signal,
      })

    it('answer their output and exit code', async () => {
      expect(await run('echo out; echo err >&2; exit 3')).toEqual({
        exited: true,
        exitcode: 3,
        stdout: 'out\n',
        stderr: 'err\n',
      })
    })

    it('are one word to the node, whatever they hold', async () => {
      const mark = join(lab.directory, 'pwned')
      for (const evil of [
        `'; touch ${mark}; '`,
        `$(touch ${mark})`,
        `\`touch ${mark}\``,
        `a\ntouch ${mark}\n`,
      ]) {
        const { stdout } = await run(`printf %s ${JSON.stringify('ok')} # ${evil.replace(/\n/g, ' ')}`)
        expect(stdout).toBe('ok')
      }
      expect(await run(`printf '%s' "it's \\"quoted\\" \\$HOME"`)).toMatchObject({
        stdout: `it's "quoted" $HOME`,
      })
      expect(existsSync(mark)).toBe(false)
    })

    it('that are killed are reported as killed', async () => {
      expect(await run('kill -9 $$')).toMatchObject({ exitcode: 137, killed: true, signal: 'SIGKILL' })
      expect(await run('sleep 30', { timeoutS: 1 })).toMatchObject({
        exitcode: 124,
        timed_out: true,
        killed: true,
      })
    })

    it('end with the request that asked for them', async () => {
      const controller = new AbortController()
      const started = join(lab.directory, 'started')
      const running = run(`touch ${started}; sleep 30`, { signal: controller.signal })
      await until(() => existsSync(started), 'the command runs', 20_000)
      controller.abort()
      expect(await running).toMatchObject({ exited: false, killed: true })
    })

    it('have their output capped', async () => {
      const { stdout, truncated } = await run('head -c 5000000 /dev/zero | tr "\\0" x; echo end')
      expect(String(stdout).length).toBeLessThanOrEqual(65_536)
      expect(String(stdout).endsWith('end\n')).toBe(true)
      expect(truncated).toBe(true)
    })

    it('are not sent to a host with another key', async () => {
      const other = `SHA256:${'A'.repeat(43)}`
      await expect(run('true', { own: { PROXMOX_SSH_HOST_KEY_FINGERPRINT: other } })).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringContaining(fingerprint()),
      })
    })

    it('are not sent once the key of the host has changed', async () => {
      const exec = createPctExec({ settings: settings(), stateDir, pct })
      const command = {
        node: 'pve1',
        vmid: 101,
        command: 'true',
        timeoutS: 10,
        signal: new AbortController().signal,
      }
      expect(await exec(command)).toMatchObject({ exitcode: 0 })
      await lab.nodes[0]!.newHostKey()
      await expect(exec(command)).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringContaining('SSH to the node failed'),
      })
      expect(readFileSync(join(stateDir, 'pinned_hosts'), 'utf8')).toContain('deputy-pinned')
    })

    it('are refused where the host is unknown and no fingerprint is given', async () => {
      const own = { PROXMOX_SSH_HOST_KEY_FINGERPRINT: '', HOME: stateDir }
      await expect(run('true', { own })).rejects.toMatchObject({
        code: 'denied',
        hint: expect.stringContaining('FINGERPRINT'),
      })
    })

    it('are refused for containers of other nodes', async () => {
      await expect(run('true', { node: 'pve2' })).rejects.toThrow('is on pve2')
    })
  },
)

describe('PROXMOX_SSH_*', () => {
  const base = { PROXMOX_SSH_ENABLED: '1', PROXMOX_SSH_NODE: 'pve1', PROXMOX_HOST: 'https://pve1.lab:8006' }

  it('have the defaults users know', () => {
    expect(parseSshSettings(base)).toMatchObject({
      host: 'pve1.lab',
      port: 22,
      user: 'root',
      fingerprint: undefined,
    })
    expect(parseSshSettings({ ...base, PROXMOX_SSH_KEY_PATH: '~/.ssh/id', HOME: '/home/me' })).toMatchObject({
      keyPath: '/home/me/.ssh/id',
    })
    expect(parseSshSettings({ PROXMOX_SSH_NODE: 'pve1' })).toBeUndefined()
  })

  it.each([
    ['PROXMOX_SSH_HOST', '-oProxyCommand=touch /tmp/x'],
    ['PROXMOX_SSH_USER', '-oProxyCommand=x'],
    ['PROXMOX_SSH_PORT', '99999'],
    ['PROXMOX_SSH_HOST_KEY_FINGERPRINT', 'MD5:aa'],
  ])('%s=%s is refused', (name, value) => {
    expect(() => parseSshSettings({ ...base, [name]: value })).toThrow(name)
  })
})
