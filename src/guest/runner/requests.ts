import { sh } from './sh.ts'

/** Calls to the guest listener, through any cut of the network. */
export const REQUESTS = sh`
# The token goes into a file of root's on a memory disk, never on a command line.
connect() {
  {
    read -r url
    read -r token
    read -r pin
    read -r resolve
  } <"$home/callback" || exit 1
  {
    echo silent
    # Connect directly: ignore proxy settings of the template.
    echo 'noproxy = "*"'
    echo 'connect-timeout = 5'
    echo "header = \"Authorization: Bearer $token\""
    echo 'header = "Expect:"'
    # The pinned key identifies the daemon, so the host name in the certificate does not matter.
    [ "$pin" = - ] || printf '%s\n' insecure "pinnedpubkey = \"$pin\""
    [ "$resolve" = - ] || echo "resolve = \"$resolve\""
  } >"$run/curl"
  if [ "$url" = mailbox ]; then
    box=$run/box chunk=262144 letters=0
    mkdir -p "$box"
  else
    unset token
  fi
  rm -f "$home/callback"
}

# api METHOD PATH [curl options]: sets $status (000 when there was no answer) and $body.
api() {
  method=$1 path=$2
  shift 2
  if [ "$url" = mailbox ]; then
    mail "$@"
  elif body=$(curl -q -K "$run/curl" -X "$method" -w '\n%{http_code}' "$@" "$url/guest/v1/$path" 2>/dev/null 8>&- 9>&-); then
    status=\${body##*"$nl"}
    body=\${body%"$nl"*}
  else
    status=000
  fi
  heed
}

# Asks for work, and says in the same breath that an order which has arrived whole is going to be obeyed: another
# start of curl would take longer than all the rest. Sets $begun to what the daemon says to that.
ask() {
  begun=
  if [ "$url" = mailbox ] || [ "$breath" = 0 ]; then
    api GET work --max-time 90
    return
  fi
  body=$(curl -q -K "$run/curl" --fail-early --max-time 90 -w '\n%{http_code}\n' "$url/guest/v1/work" \
    --next -K "$run/curl" --max-time 20 -w '\n%{http_code}' -d '' "$url/guest/v1/begin" 2>/dev/null 8>&- 9>&-) ||
    [ $? != 2 ] || breath=0
  case $body in
    *"\${nl}end$nl"*)
      # Whole, whatever became of the second call.
      status=200
      begun=\${body#*"\${nl}end$nl$nl"200"$nl"}
      body=\${body%%"\${nl}end$nl"*}\${nl}end$nl
      ;;
    *)
      status=\${body#*"$nl"}
      status=\${status%%"$nl"*}
      body=\${body%%"$nl"*}
      heed
      ;;
  esac
}

# Too many calls, and so many seconds to wait. Whoever has called calls again: nothing is lost but time.
heed() {
  [ "$status" = 429 ] || return 0
  case $body in [1-9]) sleep "$body" ;; *) sleep 1 ;; esac
}

# The daemon no longer knows this machine, so nobody reads its results.
disowned() {
  case $status in 401 | 403 | 404 | 410) return 0 ;; esac
  return 1
}

# Repeats until the daemon has answered; false when it disowned us, was silent for too long, or said no more often
# than we care to ask ($most).
insist() {
  now
  giveup=$((now + patience)) pause=1 refusals=0
  while :; do
    api "$@"
    [ "$status" = 200 ] && return 0
    disowned && return 1
    case $status in
      000 | 429 | 503) ;;
      *) refusals=$((refusals + 1)) ;;
    esac
    [ "$refusals" -le "$most" ] || return 1
    now
    [ "$now" -lt "$giveup" ] || return 1
    sleep "$pause"
    [ "$pause" -ge 8 ] || pause=$((pause * 2))
  done
}
`
