#!/bin/sh
# Builds the disks that real guests of the emulated cluster boot, and prints the directory that holds them:
# disk.qcow2, a template; cloud.qcow2, which is to become one, without the guest agent and with cloud-init as Debian
# sets it up; vmlinux and initrd. Kept in .cache/vm under a name made from the recipe, so that a change of any file
# here builds new ones. Needs neither loop devices nor mounts; as an ordinary user it needs user namespaces.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${DEPUTY_VM_CACHE:-$here/../../../.cache/vm}

mkdir -p "$cache"
cache=$(CDPATH= cd -- "$cache" && pwd)
directory=$cache/$(cat "$here"/* | sha256sum | cut -c1-16)

# Two builders would only slow each other down.
exec 9>"$cache/lock"
flock 9
if [ -d "$directory" ]; then
  printf '%s\n' "$directory"
  exit 0
fi

for tool in mmdebstrap qemu-img mke2fs zstd xz cpio flock; do
  command -v "$tool" >/dev/null 2>&1 || PATH=$PATH:/usr/sbin:/sbin
  command -v "$tool" >/dev/null 2>&1 || {
    echo "$tool is not installed: run test/vm/image/setup.sh" >&2
    exit 3
  }
done

# An ordinary user works as the users of a namespace, and those must get through to the files.
open_to_all() {
  at=$1
  while :; do
    case $(stat -Lc %A "$at") in *[xt]) ;; *) return 1 ;; esac
    [ "$at" != / ] || return 0
    at=$(dirname "$at")
  done
}
[ "$(id -u)" = 0 ] || open_to_all "${TMPDIR:-/tmp}" || export TMPDIR=/tmp

scratch=$(mktemp -d "${TMPDIR:-/tmp}/deputy-image.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
chmod 0755 "$scratch"
mkdir -m 0777 "$scratch/out"
cp "$here"/* "$scratch"

# Everything that makes an apt-get run slow and that nobody reads here is left out.
mmdebstrap --quiet --variant=essential \
  --include=apt,systemd-sysv,udev,cloud-init,qemu-guest-agent,acpid,curl,ca-certificates,sudo,iproute2,kmod,busybox-static \
  --aptopt='Acquire::Languages "none"' \
  --dpkgopt=force-unsafe-io \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/info/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/i18n/*' \
  --customize-hook="sh '$scratch/customize.sh' \"\$1\" '$scratch'" \
  trixie "$scratch/root.tar" "${DEPUTY_VM_MIRROR:-http://deb.debian.org/debian}" </dev/null >&2 9>&-

# Files of other users keep their owners only as root, be it the root of a namespace.
if [ "$(id -u)" = 0 ]; then sh "$scratch/pack.sh" "$scratch"
else mmdebstrap --unshare-helper sh "$scratch/pack.sh" "$scratch" 9>&-; fi >&2

rm -rf "$directory.new"
mkdir "$directory.new"
cp "$scratch/out/vmlinux" "$scratch/out/initrd" "$directory.new"
for disk in disk cloud; do
  qemu-img convert -q -O qcow2 -c -o compression_type=zstd "$scratch/out/$disk.raw" "$directory.new/$disk.qcow2"
done
mv "$directory.new" "$directory"
find "$cache" -mindepth 1 -maxdepth 1 -type d ! -path "$directory" -exec rm -rf {} +
printf '%s\n' "$directory"
