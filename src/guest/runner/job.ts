import { sh } from './sh.ts'

/** One job from its order to its report. */
export const JOB = sh`
# The value of a field of the work order.
field() {
  field=\${body#*"$nl$1 "}
  if [ "$field" = "$body" ]; then field=; else field=\${field%%"$nl"*}; fi
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
  sent=0 out_at=0 err_at=0 frame='' frame_length=0 last='' exact='' enders=
  as_it_is=1
  [ "$url" != mailbox ] || as_it_is=0
  body=
  fetch_inputs || return
  if ! is_ready; then
    leave_room
    prepare_room
    is_ready
  fi
  # It may have been said already, together with the question for work.
  case $begun in
    "$job "*" run\${nl}200" | "$job "*" stop\${nl}200") sent=\${begun#* } ;;
    *)
      if ! insist POST "jobs/$job/started" -d ''; then
        sleep 1
        return
      fi
      sent=$body
      ;;
  esac
  sent=\${sent%% *}
  fresh=0
  printf '%s\n' "$order" >&8 &
  enders=$!
  exec 8>&-
  order=
  # Its start was the first sign of life. Whoever prints at once is heard at once.
  now
  next_beat=$((now + beat)) due=$((now + timeout)) clock=0 eager=10
  # Its first words come before the clock, unless the call that sends them may take longer than the job.
  [ "$timeout" -gt 120 ] || watch_clock
  while :; do
    look
    if [ "$state" = Z ]; then
      # What it printed need not wait for the cleaning up.
      [ "$sent" != 0 ] || pump
      break
    fi
    now
    if [ "$now" -ge "$next_beat" ]; then
      watch_clock
      api POST "jobs/$job/heartbeat" --max-time 20 -d ''
      if [ "$status" = 200 ]; then obey "$body"; elif disowned; then break; fi
      next_beat=$((now + beat))
    fi
    if ! pump; then
      disowned && break
      watch_clock
    fi
    if [ "$more" = 1 ]; then
      watch_clock
      continue
    fi
    if [ "$eager" -gt 0 ]; then
      eager=$((eager - 1))
      sleep 0.05
    else
      watch_clock
      sleep 0.2
    fi
  done
  # What was to end this job must not end the next.
  # shellcheck disable=SC2086 # Numbers.
  kill $enders 2>/dev/null
  bury
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
  # Report the exit status even if sending the files fails.
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
