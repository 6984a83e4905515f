#!/bin/sh
# busybox-image OUT.tar: the file system of an image with nothing but busybox.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/tmp" "$root/etc"
cp "$(command -v busybox)" "$root/bin/busybox"
# With its libraries, where it is not a static one.
ldd "$(command -v busybox)" 2>/dev/null | sed -n 's/.*\(=> \|^\t\)\(\/[^ ]*\) (.*/\2/p' | while read -r library; do
  mkdir -p "$root${library%/*}"
  cp -L "$library" "$root$library"
done
for applet in $(busybox --list); do [ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"; done
chmod 1777 "$root/tmp"
tar -C "$root" --owner=0 --group=0 -cf "$1" .
