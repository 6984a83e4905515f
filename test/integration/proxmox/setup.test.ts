import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestCli } from '../../support/cli.ts'
import { hasCurl } from '../../support/curl.ts'
import { freePort } from '../../support/free-port.ts'
import { fastGuests } from '../../support/pve/guests/fast.ts'
import { startCluster } from '../../support/pve.ts'

const begin = async () => {
  const cluster = await startCluster({ guests: fastGuests() })
  onTestFinished(() => cluster.close())
  const { PROXMOX_HOST, PROXMOX_SSL_MODE, PROXMOX_SSL_FINGERPRINT } = cluster.emulator.env()
  const cli = createTestCli({
    PROXMOX_HOST,
    PROXMOX_SSL_MODE,
    PROXMOX_SSL_FINGERPRINT,
    CALLBACK_HOST: '127.0.0.1',
    CALLBACK_PORT: String(await freePort()),
  })
  onTestFinished(() => cli.close())
  return { cluster, cli }
}

/** What a shell makes of the `export` lines among some text. */
const exported = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^(?:# )?export (.+)$/gm)].flatMap(([, pairs = '']) =>
      pairs.split(' ').map(pair => pair.split('=', 2)),
    ),
  )

const FLAGS = ['--user', 'new@pve', '--token', 'fresh', '--seeds', 'seeds']

describe('deputy proxmox setup', () => {
  it('prints what an administrator types, and then what to set', async () => {
    const { cli } = await begin()
    const { code, stdout } = await cli.run(['proxmox', 'setup', ...FLAGS])
    expect(code).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter(line => !/^(# |pveum )/.test(line))).toEqual([])
    expect(exported(stdout)).toMatchObject({
      PROXMOX_USER: 'new@pve',
      PROXMOX_TOKEN_NAME: 'fresh',
      PROXMOX_TOKEN_VALUE: '…',
      PROXMOX_SEED_STORAGE: 'seeds',
      DEFAULT_VM_TEMPLATE: '9000',
    })
    expect(lines.at(-1)).toBe('# deputy daemon restart; deputy doctor')
  })

  it.skipIf(!hasCurl)('makes a token whose printed settings run a job', async () => {
    const { cluster, cli } = await begin()
    const admin = { PROXMOX_USER: 'root@pam', PROXMOX_PASSWORD: cluster.emulator.standard.rootPassword }
    const made = await cli.run(['proxmox', 'setup', '--apply', ...FLAGS], { env: admin })
    expect(made.stderr).toBe('')
    const settings = exported(made.stdout)
    const doctor = await cli.run(['doctor'], { env: settings })
    expect(doctor.stdout).toContain('proxmox ready')
    expect(doctor.stdout).toContain('the token has every right that jobs need')
    const run = await cli.run(['run', '--runtime', 'proxmox', '--', 'echo made it'], { env: settings })
    expect(run).toMatchObject({ code: 0, stdout: 'made it\n' })
    const again = await cli.run(['proxmox', 'setup', '--apply', ...FLAGS], { env: admin })
    expect(again.stdout).toContain('its value cannot be read again')
  })

  it('says so when it is not an administrator who asks, or when there is no template yet', async () => {
    const { cluster, cli } = await begin()
    const { PROXMOX_HOST: _, ...token } = cluster.emulator.env()
    const refused = await cli.run(['proxmox', 'setup', '--apply', ...FLAGS], { env: token })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('PROXMOX_USER=root@pam PROXMOX_PASSWORD=')
    const admin = { PROXMOX_USER: 'root@pam', PROXMOX_PASSWORD: cluster.emulator.standard.rootPassword }
    const early = await cli.run(['proxmox', 'setup', '--apply', '--template', '777'], { env: admin })
    expect(early.stdout).toContain('granted DeputyDisks on /storage/local-lvm')
    expect(early.stdout).toContain('There is no template 777 yet: deputy proxmox template')
  })
})
