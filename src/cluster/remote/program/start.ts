/** Who starts a command, and who only follows it. */
export const START = `
# In a session that was opened ahead: have everything ready, and wait for a request.
standby() {
  if command -v perl >/dev/null 2>&1; then
    D_STANDBY=1
    export D_STANDBY D_OWNER D_PROGRAM D_HOLDER
    exec perl -e "$D_HOLDER"
  fi
  echo 'deputy-standby sh'
}

run() {
  dir="$base/$D_ID"
  case $D_CWD in '' | /*) ;; *) D_CWD="$HOME/$D_CWD" ;; esac
  if [ -z "$D_PLAIN" ] && ! [ -d "$dir" ] && command -v perl >/dev/null 2>&1; then
    export D_OWNER D_ID D_CMD D_ARGX D_ENVX D_CWD D_WORK D_MEMO D_TIMEOUT D_GRACE D_KEEP D_FROM D_PROGRAM D_HOLDER
    exec perl -e "$D_HOLDER"
  fi
  own=
  if [ -n "$D_WORK" ]; then own=1 D_CWD="$work/$D_WORK"; elif [ -z "$D_CWD" ]; then own=1 D_CWD="$dir/work"; fi
  trap 'woken=1' USR1
  if mkdir "$dir" 2>/dev/null || { mkdir -p "$base" "$work" 2>/dev/null && mkdir "$dir" 2>/dev/null; }; then
    [ -n "$own" ] && ! [ -d "$D_CWD" ] && mkdir "$D_CWD" 2>/dev/null
    if printf '%-7s\\n' '' > "$dir/exit" && printf '%s\\n' "$D_CMD" > "$dir/cmd" && printf '%s' "$D_MEMO" > "$dir/memo" && printf '%-15s\\n' '' > "$dir/out.lost" && printf '%-15s\\n' '' > "$dir/err.lost" && true > "$dir/index"; then
      [ -e "$dir/never" ] && { echo 'n it was given up before it reached the node'; return; }
      printf '%s\\n' "$$" > "$dir/follower"
      (supervise) < /dev/null > /dev/null 2>&1 &
      echo 's 1'
      fast=1
    else
      rm -rf "$dir"
      echo "f the node could not write to $base (is its disk full?)"
      return
    fi
  elif [ -d "$dir" ]; then
    begun || return
    printf '%s\\n' "$$" > "$dir/follower"
    echo 's 0'
    by_holder
  else
    echo "f the node could not make $dir (is its disk full or read-only?)"
    return
  fi
  follow
}

attach() {
  dir="$base/$D_ID"
  trap 'woken=1' USR1
  bury && { echo 'n the node does not know this command'; return; }
  [ -d "$dir" ] || { echo "l the node could not look for it in $base (is its disk full or read-only?)"; return; }
  begun || return
  printf '%s\\n' "$$" > "$dir/follower"
  echo 's 0'
  by_holder
  follow
}

# What was started by the other holder is followed by it.
by_holder() {
  [ -e "$dir/ring" ] || return 0
  D_FOLLOW=1
  export D_FOLLOW D_OWNER D_ID D_FROM
  # It is told the end by a signal that must not end it before it listens.
  trap '' USR1
  command -v perl >/dev/null 2>&1 && exec perl -e "$D_HOLDER"
  echo 'l the node has no perl any more, which the command was started with'
  exit
}

# What whoever follows it must know first. One that is not there is not to come any more: nobody would know it then.
memo() {
  dir="$base/$D_ID"
  bury || begun > /dev/null
  cat "$dir/memo" 2>/dev/null
  echo
}

# Where the node knows nothing of a command: a request that is still on its way, however late, finds this and ends.
bury() {
  mkdir "$dir" 2>/dev/null || { mkdir -p "$base" "$work" 2>/dev/null && mkdir "$dir" 2>/dev/null; } || return 1
  true > "$dir/never"
}

# Whoever made the directory may still be writing it down. After a power cut it may be there in part for ever.
begun() {
  n=0
  until [ -e "$dir/index" ]; do
    [ -e "$dir/never" ] && { echo 'n it was given up before it reached the node'; return 1; }
    [ -d "$dir" ] || { echo 'l it was removed from the node'; return 1; }
    [ "$n" -ge 150 ] && { echo 'l only a part of its record is left on the node (was its power cut?)'; return 1; }
    sleep 0.02 2>/dev/null || { sleep 1; n=$((n + 50)); }
    n=$((n + 1))
  done
}
`
