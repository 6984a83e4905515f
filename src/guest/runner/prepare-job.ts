import { sh } from './sh.ts'

/** Where a job is to run, made ready before there is one. */
export const PREPARE_JOB = sh`
# Everything a job needs that does not depend on it, down to the process that will become it; done while nobody
# waits: a start of a program is what takes longest here.
prepare_room() {
  rm -f "$run/ended" "$run/timedout" "$run/stopped" "$run/pid" "$run/code" "$run/release" "$run/order" \
    "$run/out" "$run/err" "$home/stdout" "$home/stderr"
  : >"$home/stdout"
  : >"$home/stderr"
  # Pipes with a name: the command may open /dev/stdout again, and what it then truncates is no file of ours.
  mkfifo "$run/release" "$run/order" "$run/out" "$run/err"
  [ -z "$drop" ] || chown "$uid:$gid" "$run/out" "$run/err"
  cat "$run/out" >>"$home/stdout" &
  out_cat=$!
  cat "$run/err" >>"$home/stderr" &
  err_cat=$!
  # Opened for both, so that nobody waits for the other: some shells give up such a wait when a child ends.
  exec 8<>"$run/order" 9<>"$run/release"
  hold &
  holder=$!
  fresh=1
}

# Whether the one that will become the job is there. A job that left something running may have ended it.
is_ready() {
  while [ ! -s "$run/pid" ] && kill -0 "$holder" 2>/dev/null; do sleep 0.02; done
  pid=
  [ -s "$run/pid" ] && read -r pid <"$run/pid"
  look
  [ "$state" != Z ]
}

# Ends what is left of the command and learns how it ended.
bury() {
  : >"$run/ended"
  [ -z "$pid" ] || kill -s KILL -- "-$pid" 2>/dev/null
  echo >&9
  wait "$holder" 2>/dev/null
  exec 8>&- 9>&-
}

leave_room() {
  [ "$fresh" = 1 ] || return 0
  is_ready
  bury
  kill "$out_cat" "$err_cat" 2>/dev/null
  wait "$out_cat" "$err_cat" 2>/dev/null
  fresh=0
}

# A machine that has done nothing yet has nothing to clear away.
empty_work() {
  for entry in "$work"/* "$work"/.[!.]* "$work"/..?*; do
    if [ -e "$entry" ] || [ -L "$entry" ]; then
      find "$work" -mindepth 1 -delete 2>/dev/null
      return
    fi
  done
}
`
