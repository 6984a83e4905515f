#!/bin/sh
# node-image OUT.tar: a small Debian with this computer's Node and npm and a user `node`, as the base of the Dockerfile has
# them. It trusts the authorities that this computer trusts, so that npm reaches the registry.
set -eu
node=$(readlink -f "$(command -v node)")
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
certificates=/etc/ssl/certs/ca-certificates.crt
# shellcheck disable=SC2016 # $1 is for the hooks.
# In a session of its own: it hangs up its whole process group when it fails.
exec setsid -w mmdebstrap --quiet --variant=apt --include=mount \
  --aptopt='Acquire::Languages "none"' \
  --dpkgopt=force-unsafe-io \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='mkdir -p "$1/usr/local/lib/node_modules" "$1/usr/local/etc" "$1/etc/ssl/certs"' \
  --customize-hook="upload $node /usr/local/bin/node" \
  --customize-hook="upload $certificates $certificates" \
  --customize-hook="copy-in $npm /usr/local/lib/node_modules" \
  --customize-hook='ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"' \
  --customize-hook="echo cafile=$certificates > \"\$1/usr/local/etc/npmrc\"" \
  --customize-hook='chmod +x "$1/usr/local/bin/node"; chroot "$1" useradd --create-home node' \
  --format=tar bookworm "$1"
