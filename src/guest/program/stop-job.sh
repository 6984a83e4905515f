# Stops the command on timeout or when the daemon asks for it.

end_job() {
  kill -s TERM -- "-$pid" 2>/dev/null
  now
  end=$((now + grace))
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$end" ]; do sleep 0.2; done
  [ -e "$run/ended" ] || kill -s KILL -- "-$pid" 2>/dev/null
}

# Enforces the timeout inside the machine, so that it holds during network outages.
start_timer() {
  [ "$timer_started" = 0 ] || return 0
  timer_started=1
  enforce_timeout &
  stoppers="$stoppers $!"
}

enforce_timeout() {
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$timeout_at" ]; do sleep 0.5; done
  [ -e "$run/ended" ] && return
  : >"$run/timedout"
  end_job
}

apply_order() {
  [ "$1" = stop ] && [ ! -e "$run/stopped" ] || return 0
  : >"$run/stopped"
  end_job &
  stoppers="$stoppers $!"
}
