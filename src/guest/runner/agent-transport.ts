import { sh } from './sh.ts'

/** Sends the same requests through files that the daemon reads with the guest agent. */
export const AGENT_TRANSPORT = sh`
# Without a network, the daemon reads the request file and writes the answer file through the guest agent.
mail() {
  letter=/dev/null save=
  while [ $# -gt 0 ]; do
    case $1 in
      --data-binary)
        case $2 in
          @*) letter=\${2#@} ;;
          *)
            printf %s "$2" >"$run/letter"
            letter=$run/letter
            ;;
        esac
        shift
        ;;
      -T)
        # The body may be large: store it on disk, not in the tmpfs that uses the job's memory.
        cat >"$home/letter"
        letter=$home/letter
        shift
        ;;
      -o)
        save=$2
        shift
        ;;
      -d | -H | --max-time) shift ;;
    esac
    shift
  done
  status=413 body=
  [ "$(wc -c <"$letter")" -lt 67000000 ] || return 0
  status=000
  now
  letters=$((letters + 1)) mail_end=$((now + 600))
  name=$now.$letters
  rm -f "$box/answer"
  # Write to a temporary file first: the daemon must not read a partial request.
  if ! { echo "$method $path $token $name" && cat "$letter"; } >"$box/new" 2>/dev/null; then
    rm -f "$box/new"
    return 0
  fi
  mv "$box/new" "$box/request"
  answered=
  while [ "$answered" != "$name" ] && now && [ "$now" -lt "$mail_end" ]; do
    # Discard the answer to an earlier request.
    if [ -e "$box/answer" ] && read -r status answered <"$box/answer" && [ "$answered" != "$name" ]; then
      rm -f "$box/answer"
    fi
    [ "$answered" = "$name" ] || sleep 0.1
  done
  rm -f "$box/request" "$home/letter"
  if [ "$answered" != "$name" ]; then
    status=000
    return 0
  fi
  if [ -n "$save" ]; then
    tail -n +2 "$box/answer" >"$save"
  else
    body=$(tail -n +2 "$box/answer" && echo x)
    body=\${body%x}
  fi
  rm -f "$box/answer"
}
`
