# launch UID RUN IMAGE COMMAND...: runs a command as this user, who must not get through to the two directories on his
# own: they become /mnt/run and /mnt/image, in a mount namespace that only the command has.
set -e
uid=$1 run=$2 image=$3
shift 3
mount -t tmpfs -o mode=0711 tmpfs /mnt
mkdir /mnt/run /mnt/image
mount --bind "$run" /mnt/run
mount --bind -o ro "$image" /mnt/image
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "$@"
