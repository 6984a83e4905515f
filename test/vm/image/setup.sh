#!/bin/sh
# Installs what building and booting test machines needs, on Debian and its relatives.
set -eu
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get here: install mmdebstrap, qemu-system-x86_64 and qemu-img yourself" >&2; exit 3; }
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -q
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
  mmdebstrap arch-test debian-archive-keyring uidmap qemu-system-x86 qemu-user-static qemu-utils bubblewrap squashfs-tools e2fsprogs socat cpio zstd xz-utils util-linux
