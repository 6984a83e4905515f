import { writeIso } from './iso.ts'
import { sh } from './runner/sh.ts'

/**
 * Completes a plain cloud image from inside. Without curl the runner is mute, without the agent nobody can look
 * into a machine. It switches off only when all is there: a machine that stays on has failed, and its console
 * says why.
 */
export const COMPLETE = sh`
# Where somebody looks. A shell ends when it is sent where it cannot go.
if (: >/dev/console) 2>/dev/null; then exec >/dev/console 2>&1; fi

missing() {
  wanted=
  command -v curl >/dev/null || wanted="$wanted curl"
  command -v qemu-ga >/dev/null || wanted="$wanted qemu-guest-agent"
  [ -n "$wanted" ]
}

install() {
  if command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends install "$@"
  elif command -v dnf >/dev/null; then dnf -y install "$@"
  elif command -v yum >/dev/null; then yum -y install "$@"
  elif command -v zypper >/dev/null; then zypper --non-interactive install "$@"
  elif command -v apk >/dev/null; then apk add "$@" && rc-update add qemu-guest-agent
  elif command -v pacman >/dev/null; then pacman -Sy --noconfirm "$@"
  else echo 'deputy: no package manager that is known'; fi
}

# What is there already needs no network. At the first boot something else may be installing, too.
tries=0
while missing && [ "$tries" -lt 5 ]; do
  [ "$tries" = 0 ] || sleep 10
  # shellcheck disable=SC2086 # Words.
  install $wanted
  tries=$((tries + 1))
done
if missing; then
  echo "deputy: could not be installed:$wanted"
  exit 1
fi

# A clean slate: each clone is a machine of its own, with another network device. What cloud-init still has to do
# would soil it again.
{
  tries=0
  until [ -e /run/cloud-init/result.json ] || [ "$tries" -ge 120 ]; do
    sleep 1
    tries=$((tries + 1))
  done
  cloud-init clean --logs --machine-id --configs network ||
    cloud-init clean --logs --machine-id || cloud-init clean --logs
  sync
  poweroff
} &
`

/** A seed for one boot of a plain cloud image: adds what machines need, leaves a clean slate, switches off. */
export const templateSeed = (instanceId: string): Buffer =>
  writeIso('cidata', [
    { name: 'meta-data', content: Buffer.from(`${JSON.stringify({ 'instance-id': instanceId })}\n`) },
    {
      name: 'user-data',
      content: Buffer.from(`#cloud-config\n${JSON.stringify({ runcmd: [['/bin/sh', '-c', COMPLETE]] })}\n`),
    },
  ])
