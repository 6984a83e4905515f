# Holds one command: its streams, its clock, its exit code. It outlives the connection.

# launch env=NAME=value... -- COMMAND...: in the background. The command writes into pipes, not files: a program that
# opens /dev/stdout again would truncate a file.
launch() {
  # With job control, where the shell has it, the command does not inherit that INT and QUIT are ignored.
  set -m 2>/dev/null
  case $- in *m*) heard=1 ;; *) heard='' ;; esac
  { hold "$@" | store err; } 3>&1 | store out &
  set +m
} < /dev/null > /dev/null 2>&1

hold() {
  set +m
  trap '' HUP
  sign supervisor
  timer=''
  if [ "$timeout" != 0 ]; then
    keep_time > /dev/null 3>&- &
    timer=$!
  fi
  # In the foreground: a shell starts background processes with INT and QUIT ignored.
  (
    exec 2>&1 1>&3 3>&-
    trap - HUP
    sign command
    # A stop request writes first and looks for the pid afterwards: one of the two sees the other.
    [ -d "$dir" ] && ! [ -e "$claim.stopped" ] || exit 143
    enter_cgroup
    become "$@"
  ) < /dev/null
  code=$?
  exec 3>&- > /dev/null
  # In place, so that a full disk cannot take the exit code.
  printf '%-7s\n' "$code" 1<> "$dir/exit"
  wake
  [ -n "$timer" ] && kill -TERM "$timer" 2>/dev/null
}

keep_time() {
  trap 'kill "$nap" 2>/dev/null; exit 0' TERM
  sleep "$timeout" &
  nap=$!
  wait "$nap"
  trap '' TERM
  true > "$dir/timedout"
  end_processes "$grace"
}

# become env=NAME=value... -- COMMAND...: uses no variable after the first export; it could be one of the command's.
become() {
  # Physically: the workspace may be a link to a mount.
  cd -P "$work/$workspace" || exit 126
  umask 022
  detach=''
  [ -z "$heard" ] && can_reset_signals && detach='/usr/bin/env --default-signal=INT,QUIT'
  for d in /usr/bin /bin; do [ -x "$d/setsid" ] && detach="$detach $d/setsid" && break; done
  left=$#
  while [ "$left" -gt 0 ]; do
    # shellcheck disable=SC2086 # Unquoted on purpose: expands to a program and its options.
    if [ "$1" = -- ] && [ -n "$detach" ]; then set -- "$@" -- $detach; detach=''; else set -- "$@" "$1"; fi
    shift
    left=$((left - 1))
  done
  # With SHLVL, bash does not take itself for the first shell of a login: it would source .bashrc a second time.
  DEPUTY_JOB=$run DEPUTY_WORKSPACE=$PWD SHLVL=1
  export DEPUTY_JOB DEPUTY_WORKSPACE SHLVL
  unset LC_ALL
  while [ "$1" != -- ]; do
    # shellcheck disable=SC2163 # The variable contains NAME=value.
    export "${1#env=}"
    shift
  done
  shift
  exec "$@"
}

# Whether env can reset ignored signals; found out once on each machine.
can_reset_signals() {
  answer=''
  if ! read -r answer 2>/dev/null < "$home/resets"; then
    if /usr/bin/env --default-signal=INT,QUIT true 2>/dev/null; then answer=yes; else answer=no; fi
    echo "$answer" > "$home/resets"
  fi
  [ "$answer" = yes ]
}

# store out|err: keeps the beginning and the end of a stream, in segments that are named by their offset. dd reads no
# more than it writes, so the next dd continues at that byte.
store() {
  trap '' HUP
  stream=$1 at=0 whole=''
  block=$((tail / 512))
  [ "$block" -ge 512 ] || block=512
  [ "$block" -le 16384 ] || block=16384
  # From here on the positional parameters are the segments of the end, as OFFSET.
  set --
  while :; do
    if ! said=$(dd bs="$block" count=64 of="$dir/$stream.$at" 2>&1); then
      # A full disk costs output, which is counted, and never the command.
      missed=$(($(wc -c)))
      printf '%-15s\n' "$missed" 1<> "$dir/${stream}_lost"
      break
    fi
    # `54+10 records in`, maybe after a warning; the same `out`; `1005 bytes` and more.
    records=${said%% records in*}
    records=${records##*[!0-9+]}
    bytes=${said##* records out?}
    bytes=${bytes%% *}
    case $bytes in '' | *[!0-9]*) bytes=$(($(wc -c < "$dir/$stream.$at"))) ;; esac
    [ $((${records%+*} + ${records#*+})) -lt 64 ] && whole=$((at + bytes)) && break
    [ "$at" = 0 ] || [ "$at" -lt "$head" ] || set -- "$@" "$at"
    at=$((at + bytes))
    # Delete segments that are neither beginning nor end.
    while [ $# -gt 1 ] && [ $((at - $2)) -ge "$tail" ]; do
      rm -f "$dir/$stream.$1"
      shift
    done
  done
  # With the length of the stream, if it is known.
  echo "$whole" > "$dir/${stream}_end"
  wake
}

# Wakes the follower when everything is there; until then it looks by itself.
wake() {
  code=''
  read -r code 2>/dev/null < "$dir/exit"
  [ -n "$code" ] && [ -e "$dir/out_end" ] && [ -e "$dir/err_end" ] && signed follower && kill -USR1 "$pid" 2>/dev/null
}
