#!/bin/sh
# tools-image OUT.tar: the file system of an image with a shell, the usual tools, Python and Perl, from those of this computer:
# it needs no network and takes seconds.
set -eu
out=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/tmp"
for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
programs='bash sh awk find xargs grep sed tar setsid python3 perl env ls cat cp mv rm mkdir rmdir ln chmod chown touch date dd
  head tail wc tr sleep seq id stat base64 fold tee true false mkfifo uname od sort cut dirname basename readlink mktemp
  expr sync df kill mount ps stty tty'
# Below /usr wherever the system keeps it: /bin is a link to it here.
copy() {
  to=$root/usr/${1#/}
  case $1 in /usr/*) to=$root$1 ;; esac
  mkdir -p "${to%/*}"
  [ -e "$to" ] || cp -L "$1" "$to"
}
for program in $programs; do
  path=$(command -v "/usr/bin/$program" || command -v "/bin/$program")
  to=$root/usr/bin/$program
  cp -L "$path" "$to"
  ldd "$path" 2>/dev/null | sed -n 's/.*\(=> \|^\t\)\(\/[^ ]*\) (.*/\2/p'
done | sort -u | while read -r library; do copy "$library"; done
library=$(/usr/bin/python3 -c 'import os; print(os.path.dirname(os.__file__))')
mkdir -p "$root$library"
tar -C "$library" --exclude=__pycache__ --exclude=test --exclude=idlelib --exclude=tkinter --exclude='config-*' \
  --exclude=dist-packages --exclude=lib2to3 --exclude=ensurepip --exclude=distutils -cf - . | tar -C "$root$library" -xf -
for base in /usr/lib/*/perl-base; do mkdir -p "$root$base" && cp -R "$base/." "$root$base"; done
chmod 755 "$root"
chmod 1777 "$root/tmp"
printf 'root:x:0:0::/:/bin/sh\n' > "$root/etc/passwd"
tar -C "$root" --owner=0 --group=0 -cf "$out" .
