#!/bin/sh
# Makes the files of a machine from the system that was built: pack.sh SCRATCH.
set -eu
cd "$1/out"
mkdir root
trap 'rm -rf root tree opt' EXIT
tar -xf ../root.tar -C root --exclude='./dev/*'
release=$(ls root/usr/lib/modules)

# The kernel as it is in memory: an emulated processor takes seconds to unpack it.
kernel=root/boot/vmlinuz-$release
for at in $(LC_ALL=C grep -aobP '\x28\xb5\x2f\xfd' "$kernel" | cut -d: -f1); do
  tail -c "+$((at + 1))" "$kernel" | zstd -dcq >vmlinux 2>/dev/null || :
  [ "$(head -c 4 vmlinux | tail -c 3)" = ELF ] && break
done
[ "$(head -c 4 vmlinux | tail -c 3)" = ELF ] || { echo "no ELF kernel inside $kernel" >&2; exit 1; }

mkdir -p tree/dev tree/root
cp root/bin/busybox tree/busybox
cp ../init tree/init
chmod 0755 tree/init
modules=root/usr/lib/modules/$release
resolve() {
  for one in $(sed -n "s|^[^:]*/$1\.ko: *||p" "$modules/modules.dep"); do
    name=${one##*/}
    resolve "${name%.ko}"
  done
  case " $order " in *" $1 "*) return ;; esac
  order="$order $1"
  find "$modules" -name "$1.ko" -exec cp {} tree \;
}
order=
for module in virtio_scsi sd_mod; do resolve "$module"; done
printf '%s\n' $order >tree/modules
(cd tree && find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0) >initrd

rm -rf root/boot/*
# Room to write; what is empty costs nothing in the image.
make_disk() {
  truncate -s 2G "$1"
  mke2fs -q -t ext4 -L root -m 0 -O ^metadata_csum \
    -E lazy_itable_init=1,lazy_journal_init=1,resize=67108864 -J size=16 -d root "$1"
}
mv root/opt opt
mkdir root/opt
make_disk disk.raw

mv opt/packages root/opt
rm -rf root/etc/cloud
mv opt/cloud root/etc
# The CD-ROM is not there yet when cloud-init wants to know whether it has anything to do.
echo 'datasource_list: [NoCloud]' >root/etc/cloud/cloud.cfg.d/90_test.cfg
chroot root dpkg --purge qemu-guest-agent
rm -rf root/dev/* root/etc/apt/sources.list root/etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/opt/packages ./' >root/etc/apt/sources.list
make_disk cloud.raw
chmod 0644 vmlinux initrd disk.raw cloud.raw
