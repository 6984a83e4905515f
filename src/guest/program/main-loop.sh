# The main loop: fetches orders, runs them, and powers the machine off when it is no longer needed.

prepare_user || power_off 'no way to give up root'
read_callback
silent_since=''
while :; do
  [ "$prepared" = 1 ] || prepare_process
  fetch_order
  case $status in
    200)
      silent_since=
      # The last line is missing after a cut transfer.
      case $body in
        *"${nl}end$nl") run_job ;;
        *) sleep 1 ;;
      esac
      ;;
    204 | 429) silent_since= ;;
    *)
      is_dismissed && power_off 'this machine is not wanted any more'
      now
      : "${silent_since:=$now}"
      [ $((now - silent_since)) -lt "$give_up_seconds" ] || power_off 'nobody answers'
      sleep 1
      ;;
  esac
done
