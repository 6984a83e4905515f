#!/busybox sh
# The first program of a VM, from its initrd: mounts the read-only root below a tmpfs, then becomes the agent.
# Sizes come on the kernel's command line, as deputy.disk=BYTES.
/busybox mount -t devtmpfs dev /dev
/busybox mount -t proc proc /proc
disk=268435456
for word in $(/busybox cat /proc/cmdline); do
  case $word in deputy.disk=*) disk=${word#*=} ;; esac
done
while read -r module; do /busybox insmod "/$module"; done </modules
n=0
until [ -b /dev/vda ] || [ $n -ge 600 ]; do
  /busybox sleep 0.05
  n=$((n + 1))
done
tmpfs() { /busybox mount -t tmpfs -o "nosuid,nodev,mode=$1,size=$2" tmpfs "$3"; }
/busybox mount -t squashfs -o ro /dev/vda /image
tmpfs 0755 "$disk" /upper
/busybox mkdir /upper/files /upper/work
/busybox mount -t overlay -o lowerdir=/image,upperdir=/upper/files,workdir=/upper/work root /root
cd /root || exit 1
/busybox mkdir -p dev proc sys run tmp work
/busybox ln -s work workspace 2>/dev/null
/busybox mount --move /dev dev
/busybox mount --move /proc proc
/busybox mount -t sysfs -o nosuid,nodev,noexec sys sys
/busybox mount -t cgroup2 -o nosuid,nodev,noexec cgroup sys/fs/cgroup
/busybox mkdir -p dev/pts dev/shm
/busybox mount -t devpts -o mode=0620,ptmxmode=0666,gid=5 devpts dev/pts
/busybox ln -sf /proc/self/fd dev/fd
/busybox ln -sf fd/0 dev/stdin
/busybox ln -sf fd/1 dev/stdout
/busybox ln -sf fd/2 dev/stderr
tmpfs 1777 67108864 dev/shm
tmpfs 0755 16777216 run
tmpfs 1777 "$disk" tmp
tmpfs 0755 "$disk" work
/busybox mkdir run/deputy
tmpfs 0700 "$((disk + 67108864))" run/deputy
/busybox chown 1000:1000 work run/deputy
/busybox hostname job
/busybox ip link set lo up
/busybox cp /agent.pl run/agent.pl
exec /busybox switch_root /root /usr/bin/perl /run/agent.pl
