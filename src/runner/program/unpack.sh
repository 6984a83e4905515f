# unpack WORKSPACE: unpacks stdin, a tar with the workspace below tree/ or work/ and files for /tmp below tmp/.
set -e
umask 022
cd
mkdir -p in
for name in tree work; do ln -sfn "$1" "in/$name"; done
ln -sfn /tmp in/tmp
exec tar -xpof - -C in
