#!/bin/sh
# enter-rootless DIRECTORY UID COMMAND...: in a mount namespace of its own, runs the command as a user that only the files
# in the directory know. It is the home of the user.
set -eu
for file in passwd subuid subgid; do mount --bind "$1/$file" "/etc/$file"; done
export HOME="$1" XDG_RUNTIME_DIR="$1/runtime"
uid=$2
shift 2
exec setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
