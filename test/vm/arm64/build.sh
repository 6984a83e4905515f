#!/bin/sh
# Unpacks a Debian for arm64 processors, as much of it as a node needs, and prints the directory. Nothing of it is
# run here: packages are not configured. Kept in .cache/vm under a name made from this file.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${DEPUTY_VM_CACHE:-$here/../../../.cache/vm}

mkdir -p "$cache"
cache=$(CDPATH= cd -- "$cache" && pwd)
directory=$cache/arm64-$(sha256sum < "$here/build.sh" | cut -c1-16)

exec 9>"$cache/lock"
flock 9
if [ -d "$directory" ]; then
  printf '%s\n' "$directory"
  exit 0
fi
scratch=$cache/arm64.new
rm -rf "$scratch"
mmdebstrap --quiet --architectures=arm64 --variant=extract \
  --include=base-files,bash,dash,coreutils,findutils,grep,gzip,mawk,procps,sed,tar,util-linux \
  --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  trixie "$scratch" "${DEPUTY_VM_MIRROR:-http://deb.debian.org/debian}" </dev/null >&2 9>&-
mkdir -p "$scratch/root" "$scratch/proc" "$scratch/dev"
ln -sf mawk "$scratch/usr/bin/awk"
printf 'root:x:0:0:root:/root:/bin/bash\n' > "$scratch/etc/passwd"
mv "$scratch" "$directory"
printf '%s\n' "$directory"
