#!/bin/sh
# debian-image OUT.tar: the file system of a small Debian. Its packages are unpacked, not configured: that takes seconds.
set -eu
# shellcheck disable=SC2016 # $1 is for the hook.
# In a session of its own: it hangs up its whole process group when it fails.
exec setsid -w mmdebstrap --quiet --variant=extract \
  --include=base-files,bash,coreutils,dash,findutils,grep,mawk,sed,tar,perl-base,util-linux \
  --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='ln -s mawk "$1/usr/bin/awk"' \
  --format=tar bookworm "$1"
