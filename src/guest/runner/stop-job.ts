import { sh } from './sh.ts'

/** Stops the command on timeout or when the daemon asks for it. */
export const STOP_JOB = sh`
end_job() {
  kill -s TERM -- "-$pid" 2>/dev/null
  now
  end=$((now + grace))
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$end" ]; do sleep 0.2; done
  [ -e "$run/ended" ] || kill -s KILL -- "-$pid" 2>/dev/null
}

# Enforces the timeout inside the machine, so that it holds during network outages.
watch_clock() {
  [ "$clock" = 0 ] || return 0
  clock=1
  keep_time &
  enders="$enders $!"
}

keep_time() {
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$due" ]; do sleep 0.5; done
  [ -e "$run/ended" ] && return
  : >"$run/timedout"
  end_job
}

obey() {
  [ "$1" = stop ] && [ ! -e "$run/stopped" ] || return 0
  : >"$run/stopped"
  end_job &
  enders="$enders $!"
}
`
