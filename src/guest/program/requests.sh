# Requests to the guest listener.

# The token goes into a file of root on a tmpfs, never on a command line.
read_callback() {
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
  if [ "$url" = agent ]; then
    box=$run/box chunk=262144 calls=0
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
  if [ "$url" = agent ]; then
    call_through_agent "$@"
  elif body=$(curl -q -K "$run/curl" -X "$method" -w '\n%{http_code}' "$@" "$url/guest/v1/$path" 2>/dev/null 8>&- 9>&-); then
    status=${body##*"$nl"}
    body=${body%"$nl"*}
  else
    status=000
  fi
  wait_when_limited
}

# Fetches an order and confirms it with the same curl: starting a second curl takes longer than everything else before
# the command. Sets $start_answer to the response to the confirmation.
fetch_order() {
  start_answer=
  if [ "$url" = agent ] || [ "$can_chain" = 0 ]; then
    api GET work --max-time 90
    return
  fi
  body=$(curl -q -K "$run/curl" --fail-early --max-time 90 -w '\n%{http_code}\n' "$url/guest/v1/work" \
    --next -K "$run/curl" --max-time 20 -w '\n%{http_code}' -d '' "$url/guest/v1/begin" 2>/dev/null 8>&- 9>&-) ||
    [ $? != 2 ] || can_chain=0
  case $body in
    *"${nl}end$nl"*)
      # The order is complete, even if the confirmation failed.
      status=200
      start_answer=${body#*"${nl}end$nl$nl"200"$nl"}
      body=${body%%"${nl}end$nl"*}${nl}end$nl
      ;;
    *)
      status=${body#*"$nl"}
      status=${status%%"$nl"*}
      body=${body%%"$nl"*}
      wait_when_limited
      ;;
  esac
}

# Waits as long as the rate limiter says. The caller retries.
wait_when_limited() {
  [ "$status" = 429 ] || return 0
  case $body in [1-9]) sleep "$body" ;; *) sleep 1 ;; esac
}

# The daemon no longer knows this machine, so nobody reads its results.
is_dismissed() {
  case $status in 401 | 403 | 404 | 410) return 0 ;; esac
  return 1
}

# Repeats a request until it succeeds. Fails if the daemon does not know this machine, does not answer for
# $give_up_seconds, or refuses the request more than $max_refusals times.
retry_api() {
  now
  give_up_at=$((now + give_up_seconds)) pause=1 refusals=0
  while :; do
    api "$@"
    [ "$status" = 200 ] && return 0
    is_dismissed && return 1
    case $status in
      000 | 429 | 503) ;;
      *) refusals=$((refusals + 1)) ;;
    esac
    [ "$refusals" -le "$max_refusals" ] || return 1
    now
    [ "$now" -lt "$give_up_at" ] || return 1
    sleep "$pause"
    [ "$pause" -ge 8 ] || pause=$((pause * 2))
  done
}
