#!/bin/sh
# Runs on the new system before it is packed: customize.sh ROOT RECIPE.
set -eu
root=$1 recipe=$2
cd "$root"

# The kernel without its package: no initramfs tools, no boot loader, modules that need no unpacking at boot.
chroot . sh -c 'cd /tmp && apt-get download -q "$(apt-cache depends linux-image-cloud-amd64 |
  sed -n "s/^ *Depends: \(linux-image-[0-9].*\)/\1/p")" && dpkg-deb -x linux-image-*.deb / && rm linux-image-*.deb'
find usr/lib/modules -name '*.ko.xz' -exec xz -d {} +
release=$(ls usr/lib/modules)
chroot . depmod "$release"

# What the image without it installs, from a directory: machines of tests have no network.
mkdir -p opt/packages
chroot . sh -c 'cd /opt/packages && apt-get download -q qemu-guest-agent'
(
  cd opt/packages
  deb=agent.deb
  mv -- *.deb "$deb"
  dpkg-deb -f "$deb"
  echo "Filename: ./$deb"
  echo "Size: $(stat -c %s "$deb")"
  echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"
) >Packages.new
mv Packages.new opt/packages/Packages

# Debian's own configuration of cloud-init is for the other image.
cp -a etc/cloud opt/cloud
cp "$recipe/cloud.cfg" etc/cloud/cloud.cfg
rm -rf etc/cloud/cloud.cfg.d/* etc/cloud/ds-identify.cfg
mkdir -p etc/systemd/system-preset
cp "$recipe/guest.preset" etc/systemd/system-preset/00-guest.preset
chroot . systemctl preset-all 2>/dev/null
while read -r unit; do
  case $unit in '' | '#'*) continue ;; esac
  ln -sf /dev/null "etc/systemd/system/$unit"
done <"$recipe/masked-units"

echo '/dev/sda / ext4 rw,noatime,x-systemd.growfs 0 0' >etc/fstab
echo debian >etc/hostname
printf '127.0.0.1 localhost\n::1 localhost\n' >etc/hosts
: >etc/machine-id
mkdir -p etc/systemd/journald.conf.d etc/acpi/events
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n' >etc/systemd/journald.conf.d/guest.conf
# The power button, without a log-in manager and its bus.
printf 'event=button/power.*\naction=/sbin/poweroff\n' >etc/acpi/events/power
printf 'button\nevdev\n' >etc/modules-load.d/guest.conf
chroot . useradd -m -s /bin/bash job
rm -rf var/lib/apt/lists/* var/cache/apt/* var/cache/debconf/*-old var/log/* var/lib/cloud
