import { writeIso } from './iso.ts'

/** Without curl the runner is mute, without the agent nobody can look inside. */
const PACKAGES = ['curl', 'qemu-guest-agent']

/** It switches off only when all is there: a machine that stays on has failed, and its console says why. */
const FINISH = `command -v curl >/dev/null && command -v qemu-ga >/dev/null || {
  echo 'deputy: the packages could not be installed' >/dev/console
  exit 1
}
cloud-init clean --logs --machine-id || cloud-init clean --logs
sync
poweroff`

/** A seed for one boot of a plain cloud image: installs what machines need, leaves a clean slate, switches off. */
export const templateSeed = (instanceId: string): Buffer =>
  writeIso('cidata', [
    { name: 'meta-data', content: Buffer.from(`${JSON.stringify({ 'instance-id': instanceId })}\n`) },
    {
      name: 'user-data',
      content: Buffer.from(
        `#cloud-config\n${JSON.stringify({
          package_update: true,
          packages: PACKAGES,
          runcmd: [['/bin/sh', '-c', FINISH]],
        })}\n`,
      ),
    },
  ])
