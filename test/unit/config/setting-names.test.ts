import { describe, expect, it } from 'vitest'
import { missingSettings, settingNames } from '../../../src/config/setting-names.ts'

describe('settings in the environment of a front', () => {
  it('are told by name, and nothing else of the environment is', () => {
    const env = {
      PROXMOX_HOST: 'pve',
      PROXMOX_TOKEN_VALUE: 'secret',
      HOME: '/root',
      AWS_SECRET: 'x',
      CLUSTER_SSH_USER: '',
    }
    expect(settingNames(env)).toEqual(['PROXMOX_HOST', 'PROXMOX_TOKEN_VALUE'])
  })

  it('that the daemon was started without are named with the way to give them', () => {
    expect(missingSettings(['CALLBACK_URL'], { CALLBACK_URL: 'http://x' })).toEqual([])
    expect(missingSettings(['CALLBACK_URL', 'ignored\nname'], {})).toEqual([
      expect.stringMatching(/sets CALLBACK_URL, .*deputy daemon restart/),
    ])
    expect(missingSettings(['PROXMOX_HOST', 'PROXMOX_USER'], {})).toEqual([
      expect.stringMatching(/^Jobs cannot run in VMs: .*PROXMOX_HOST.*deputy daemon restart/),
    ])
  })
})
