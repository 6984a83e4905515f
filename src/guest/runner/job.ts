import { sh } from './sh.ts'

/** One job from its order to its report. */
export const JOB = sh`
# The value of a field of the work order.
field() {
  field=\${body#*"$nl$1 "}
  if [ "$field" = "$body" ]; then field=; else field=\${field%%"$nl"*}; fi
}

# Everything a job needs that does not depend on it; done while nobody waits.
prepare_room() {
  rm -f "$run/ended" "$run/timedout" "$run/stopped" "$run/pid" "$run/code" "$run/release" "$run/out" "$run/err" "$home/stdout" "$home/stderr"
  : >"$home/stdout"
  : >"$home/stderr"
  # Pipes with a name: the command may open /dev/stdout again, and what it then truncates is no file of ours.
  mkfifo "$run/release" "$run/out" "$run/err"
  [ -z "$drop" ] || chown "$uid:$gid" "$run/out" "$run/err"
  fresh=1
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

run_job() {
  order=$body
  body=$nl$body
  field job && job=$field
  field timeout && timeout=$field
  field grace && grace=$field
  field heartbeat && beat=$field
  field files && files=$field
  field continues && continues=$field
  field keep && keep=$field
  inputs=
  rest=$body
  while :; do
    case $rest in *"\${nl}input "*) rest=\${rest#*"\${nl}input "} inputs="$inputs \${rest%%"$nl"*}" ;; *) break ;; esac
  done
  [ "$continues" = 1 ] || empty_work
  fresh=0
  sent=0 out_at=0 err_at=0 frame='' frame_length=0 last='' exact=''
  body=
  fetch_inputs || return
  if ! insist POST "jobs/$job/started" -d ''; then
    sleep 1
    return
  fi
  sent=\${body%% *}
  cat "$run/out" >>"$home/stdout" &
  out_cat=$!
  cat "$run/err" >>"$home/stderr" &
  err_cat=$!
  # Opened for both, so that nobody waits for the other: some shells give up such a wait when a child ends.
  exec 9<>"$run/release"
  hold &
  holder=$!
  order=
  pid=
  while [ ! -s "$run/pid" ] && kill -0 "$holder" 2>/dev/null; do sleep 0.02; done
  [ -s "$run/pid" ] && read -r pid <"$run/pid"
  # Its start was the first sign of life. Whoever prints at once is heard at once.
  now
  next_beat=$((now + beat)) eager=10
  watch_clock &
  enders=$!
  while :; do
    look
    [ "$state" = Z ] && break
    now
    if [ "$now" -ge "$next_beat" ]; then
      api POST "jobs/$job/heartbeat" --max-time 20 -d ''
      if [ "$status" = 200 ]; then obey "$body"; elif disowned; then break; fi
      next_beat=$((now + beat))
    fi
    if ! pump && disowned; then break; fi
    [ "$more" = 1 ] && continue
    if [ "$eager" -gt 0 ]; then
      eager=$((eager - 1))
      sleep 0.05
    else
      sleep 0.2
    fi
  done
  : >"$run/ended"
  [ -z "$pid" ] || kill -s KILL -- "-$pid" 2>/dev/null
  # What was to end this job must not end the next.
  # shellcheck disable=SC2086 # Numbers.
  kill $enders 2>/dev/null
  echo >&9
  wait "$holder" 2>/dev/null
  exec 9>&-
  sweep
  code=
  [ -r "$run/code" ] && read -r code <"$run/code"
  report
}

# Everything that was printed first, then the files, then the end.
report() {
  now
  giveup=$((now + patience))
  while :; do
    if pump; then
      [ "$more" = 1 ] || break
    else
      disowned && return
      now
      [ "$now" -lt "$giveup" ] || return
      sleep 1
    fi
  done
  # The files may fail; the end is told in any case.
  if [ "$files" = 1 ]; then
    most=3
    send_files
    most=10000
  fi
  signal=0
  if [ -n "$exact" ] && [ "$exact" != 0 ]; then
    signal=$((exact & 127)) code=$((exact >> 8 & 255))
  fi
  why=
  [ -e "$run/timedout" ] && why=timeout
  [ -z "$why" ] && [ -e "$run/stopped" ] && why=stopped
  insist POST "jobs/$job/exit?code=\${code:-255}&signal=$signal&ended=$why" -d '' || return
  [ "$body" = wait ] || power_off 'the job is done'
}
`
