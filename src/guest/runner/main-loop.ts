import { sh } from './sh.ts'

/** The main loop: asks for work, runs it, and powers the machine off when it is no longer needed. */
export const MAIN_LOOP = sh`
prepare_user || power_off 'no way to give up root'
connect
silent_since=''
while :; do
  [ "$fresh" = 1 ] || prepare_room
  ask
  case $status in
    200)
      silent_since=
      # A cut transfer lacks the last line.
      case $body in
        *"\${nl}end$nl") run_job ;;
        *) sleep 1 ;;
      esac
      ;;
    204 | 429) silent_since= ;;
    *)
      disowned && power_off 'this machine is not wanted any more'
      now
      : "\${silent_since:=$now}"
      [ $((now - silent_since)) -lt "$patience" ] || power_off 'nobody answers'
      sleep 1
      ;;
  esac
done
`
