# The ordinary user that the job runs as.

prepare_user() {
  as_job=
  # A shell ignores these signals in background jobs, and an exec'd program inherits ignored signals.
  signals=--default-signal=INT,QUIT
  /usr/bin/env "$signals" true 2>/dev/null || signals=
  [ "$user" != - ] && [ "$(id -u)" = 0 ] || return 0
  id "$user" >/dev/null 2>&1 || useradd -m -s /bin/sh "$user" 2>/dev/null ||
    adduser -D -s /bin/sh "$user" >/dev/null 2>&1 || user=nobody
  uid=$(id -u "$user") gid=$(id -g "$user")
  chown "$uid:$gid" "$work"
  if command -v setpriv >/dev/null 2>&1; then
    as_job="setpriv --reuid=$uid --regid=$gid --clear-groups --no-new-privs"
  elif command -v runuser >/dev/null 2>&1; then
    as_job="runuser -u $user --"
  else
    log 'neither setpriv nor runuser: the job would run as root'
    return 1
  fi
}
