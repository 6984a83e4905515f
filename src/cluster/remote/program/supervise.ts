/** What holds a command by the shell alone: its streams, its clock, its end. */
export const SUPERVISE = `
# The command writes into pipes, not files: what opens /dev/stdout anew must not find a file to cut short.
supervise() {
  trap '' HUP
  { body | { store err; } 3>&-; } 3>&1 | { store out; }
}

# store FILE: no more of a stream than is kept of it, or than the disk takes; the rest is read and counted.
store() {
  (ulimit -c 0; ulimit -f $((\${D_KEEP%% *} / 512 + \${D_KEEP#* } / 512)); exec cat > "$dir/$1")
  lost=$(($(wc -c)))
  [ "$lost" -gt 0 ] && printf '%-15s\\n' "$lost" 1<> "$dir/$1.lost"
  true > "$dir/$1.end"
  wake
}

body() {
  myself
  birth "$me"
  printf '%s %s %s\\n' "$me" "$born" "$boot" > "$dir/super"
  shell=sh
  command -v bash > /dev/null && shell=bash
  signals
  (
    exec 2>&1 1>&3 3>&-
    trap - HUP
    cd "$D_CWD" || exit 126
    umask 022
    set -- "$sig" "$shell" "$dir/cmd" "$D_ID"
    eval "$D_ENV"
    DEPUTY_JOB=$4
    export DEPUTY_JOB
    detach "$1" "$2" "$3"
  ) < /dev/null &
  c=$!
  # From here on the command alone keeps the pipes open.
  exec 3>&- > /dev/null 2>&1
  birth "$c"
  printf '%s %s %s\\n' "$c" "$born" "$boot" > "$dir/cpid"
  # Whoever cancels writes first and looks for the number then: one of both sees the other.
  if ! [ -d "$dir" ]; then kill -KILL "$c" "-$c"; elif [ -e "$dir/cancelled" ]; then (slay "$dir" "$D_ID" "$D_GRACE") & fi
  w=
  if [ "$D_TIMEOUT" != 0 ]; then
    (
      trap 'kill "$s" 2>/dev/null; exit 0' TERM
      sleep "$D_TIMEOUT" &
      s=$!
      wait "$s"
      trap '' TERM
      true > "$dir/timedout"
      slay "$dir" "$D_ID" "$D_GRACE" > /dev/null
    ) &
    w=$!
  fi
  wait "$c"
  code=$?
  [ -n "$w" ] && kill -TERM "$w" 2>/dev/null
  # In place, so that a full disk cannot take the one thing that must be kept.
  printf '%-7s\\n' "$code" 1<> "$dir/exit"
  wake
}

# Shells start what is in the background with INT and QUIT ignored, and a command expects them as usual.
# What this node has against it is found out once.
signals() {
  sig=
  read -r sig 2>/dev/null < "$base/../signals" && return
  if env --default-signal=INT,QUIT true 2>/dev/null; then sig=env; elif command -v perl >/dev/null 2>&1; then sig=perl; else sig=none; fi
  echo "$sig" > "$base/../signals"
}

# detach HOW COMMAND...: no variable of its own, as they are those of the command by now.
detach() {
  if [ "$1" = env ] && command -v setsid >/dev/null 2>&1; then shift; exec env --default-signal=INT,QUIT setsid "$@"; fi
  if [ "$1" != none ] && command -v perl >/dev/null 2>&1; then
    shift
    exec perl -e 'use POSIX; $SIG{INT} = $SIG{QUIT} = "DEFAULT"; POSIX::setsid(); exec @ARGV; exit 127' "$@"
  fi
  shift
  if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
  exec "$@"
}

wake() {
  f=
  read -r f 2>/dev/null < "$dir/follower"
  [ -n "$f" ] && kill -USR1 "$f" 2>/dev/null
}
`
