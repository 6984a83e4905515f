# Stops runs, deletes their files, and lists workspaces.

stop() {
  left=''
  if ! bar && is_claimed && ! [ -e "$claim.barred" ]; then
    true > "$claim.stopped"
    end_processes "$grace"
  fi
  echo "stopped run=$run left='$left'"
}

# Deletes the record of a run whose processes have ended. Sets left: processes that have not.
remove() {
  left=''
  # The mark of a run that never arrived has to outlive a late request for it.
  is_claimed && ! [ -e "$claim.barred" ] || return 0
  # Claimed, but not recorded yet: the request that is about to write the record finds the mark.
  if ! [ -e "$dir/index" ]; then
    true > "$claim.barred"
    [ -e "$dir/index" ] || return 0
  fi
  true > "$claim.stopped"
  is_over || end_processes 0
  [ -z "$left" ] || return 0
  tries=0
  while signed supervisor && [ "$tries" -lt 50 ]; do
    sleep 0.05 2>/dev/null || sleep 1
    tries=$((tries + 1))
  done
  signed supervisor && kill -KILL "$pid" 2>/dev/null
  leave_cgroup
  rm -rf "$dir" "$claim" "$claim.stopped" "$claim.barred"
}

# A workspace is what a machine of the daemon is here. Its runs begin with its name.
release() {
  left=''
  # By its claim as well: the record of a run that is just starting may not be there yet.
  for f in "$claims/$workspace" "$claims/$workspace".* "$runs/$workspace"/ "$runs/$workspace".*/; do
    case $f in *.barred | *.stopped | *\*) continue ;; esac
    [ -e "$f" ] || continue
    run=${f%/}
    run=${run##*/}
    dir=$runs/$run claim=$claims/$run
    remove
    [ -z "$left" ] || break
  done
  if [ -z "$left" ]; then
    set -- "$work/$workspace"
    # A command may have taken its own rights away.
    rm -rf "$1" 2>/dev/null || { chmod -R u+rwX "$1" && rm -rf "$1"; } 2>/dev/null || left=0
  fi
  echo "released workspace=$workspace left='$left'"
  # A request that was on its way for a day does not arrive any more.
  for f in "$claims"/*.barred; do
    [ -e "$f" ] && find "$f" -mtime +0 -exec rm -f "$f" "${f%.barred}" \;
  done
}

list_workspaces() {
  for d in "$work"/*/; do
    d=${d%/}
    case $d in */\*) continue ;; esac
    echo "workspace workspace=${d##*/} createdAt=$(modified "$d")"
  done
}
