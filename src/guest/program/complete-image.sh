# Completes a plain cloud image from inside: the runner needs curl, and probes need the guest agent. It powers off only
# on success; the console of a machine that stays on shows the reason.

# Print to the console. Test it in a subshell first: a failed exec would end this shell.
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

# Install only what is missing. Retry: another program may be installing packages at the first boot.
tries=0
while missing && [ "$tries" -lt 5 ]; do
  [ "$tries" = 0 ] || sleep 10
  # shellcheck disable=SC2086 # Unquoted on purpose: expands to zero or more words.
  install $wanted
  tries=$((tries + 1))
done
if missing; then
  echo "deputy: could not be installed:$wanted"
  exit 1
fi

# Wait until cloud-init has finished, then remove what identifies this machine: each clone gets its own identity.
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
