import { sh } from './sh.ts'

/** Ends the command when its time is over or when the daemon says so. */
export const STOP_JOB = sh`
end_job() {
  kill -s TERM -- "-$pid" 2>/dev/null
  now
  end=$((now + grace))
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$end" ]; do sleep 0.2; done
  [ -e "$run/ended" ] || kill -s KILL -- "-$pid" 2>/dev/null
}

# Ends the job in time whatever the network does.
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
