# kernel ROOT DIRECTORY PACKAGE: a hook of mmdebstrap. Puts a kernel and a static busybox for a new system into a
# directory, without installing them: the package of a kernel would bring a boot loader. Then adds the
# user of jobs, and removes what only installing needs.
set -eu
cd "$1"
# The package without a version depends on the newest one.
chroot . sh -c 'cd /tmp && apt-get download -q busybox-static "$(apt-cache depends "$1" |
  sed -n "s/^ *Depends: \(linux-image-[0-9].*\)/\1/p" | head -n 1)"' sh "$3"
for package in tmp/*.deb; do dpkg-deb -x "$package" "$2"; done
rm -f tmp/*.deb
echo 'job:x:1000:1000::/work:/bin/bash' >>etc/passwd
echo 'job:x:1000:' >>etc/group
rm -rf var/lib/apt/lists/* var/cache/apt/* var/log/*
