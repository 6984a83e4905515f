# One job, from its order to its exit status.

# The value of a field of the work order.
field() {
  field=${body#*"$nl$1 "}
  if [ "$field" = "$body" ]; then field=; else field=${field%%"$nl"*}; fi
}

run_job() {
  order=$body
  body=$nl$body
  field job && job=$field
  field timeout && timeout=$field
  field grace && grace=$field
  field heartbeat && heartbeat=$field
  field files && files=$field
  field continues && continues=$field
  field keep && keep=$field
  inputs=
  rest=$body
  while :; do
    case $rest in *"${nl}input "*) rest=${rest#*"${nl}input "} inputs="$inputs ${rest%%"$nl"*}" ;; *) break ;; esac
  done
  [ "$continues" = 1 ] || clear_workspace
  sent=0 out_at=0 err_at=0 frame='' frame_length=0 last='' wait_status='' stoppers=
  send_whole_file=1
  [ "$url" != agent ] || send_whole_file=0
  body=
  fetch_inputs || return
  if ! is_ready; then
    discard_process
    prepare_process
    is_ready
  fi
  # The start may be confirmed already, see fetch_order.
  case $start_answer in
    "$job "*" run${nl}200" | "$job "*" stop${nl}200") sent=${start_answer#* } ;;
    *)
      if ! retry_api POST "jobs/$job/started" -d ''; then
        sleep 1
        return
      fi
      sent=$body
      ;;
  esac
  sent=${sent%% *}
  prepared=0
  printf '%s\n' "$order" >&8 &
  stoppers=$!
  exec 8>&-
  order=
  # The start counts as a heartbeat.
  now
  next_heartbeat=$((now + heartbeat)) timeout_at=$((now + timeout)) timer_started=0 quick_polls=10
  # Start the timer after the first output, as it starts programs; but first if sending may take longer than the job.
  [ "$timeout" -gt 120 ] || start_timer
  while :; do
    read_process_state
    if [ "$state" = Z ]; then
      # Send the output before the cleanup.
      [ "$sent" != 0 ] || send_output
      break
    fi
    now
    if [ "$now" -ge "$next_heartbeat" ]; then
      start_timer
      api POST "jobs/$job/heartbeat" --max-time 20 -d ''
      if [ "$status" = 200 ]; then apply_order "$body"; elif is_dismissed; then break; fi
      next_heartbeat=$((now + heartbeat))
    fi
    if ! send_output; then
      is_dismissed && break
      start_timer
    fi
    if [ "$more" = 1 ]; then
      start_timer
      continue
    fi
    if [ "$quick_polls" -gt 0 ]; then
      quick_polls=$((quick_polls - 1))
      sleep 0.05
    else
      start_timer
      sleep 0.2
    fi
  done
  # These processes must not stop the next job.
  # shellcheck disable=SC2086 # Unquoted on purpose: expands to numbers.
  kill $stoppers 2>/dev/null
  reap
  kill_leftovers
  code=
  [ -r "$run/code" ] && read -r code <"$run/code"
  report
}

# Sends the rest of the output, then the files, then the exit status.
report() {
  now
  give_up_at=$((now + give_up_seconds))
  while :; do
    if send_output; then
      [ "$more" = 1 ] || break
    else
      is_dismissed && return
      now
      [ "$now" -lt "$give_up_at" ] || return
      sleep 1
    fi
  done
  # Report the exit status even if sending the files fails.
  if [ "$files" = 1 ]; then
    max_refusals=3
    send_files
    max_refusals=10000
  fi
  signal=0
  if [ -n "$wait_status" ] && [ "$wait_status" != 0 ]; then
    signal=$((wait_status & 127)) code=$((wait_status >> 8 & 255))
  fi
  why=
  [ -e "$run/timedout" ] && why=timeout
  [ -z "$why" ] && [ -e "$run/stopped" ] && why=stopped
  retry_api POST "jobs/$job/exit?code=${code:-255}&signal=$signal&ended=$why" -d '' || return
  [ "$body" = wait ] || power_off 'the job is done'
}
