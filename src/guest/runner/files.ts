import { sh } from './sh.ts'

/** Files on their way in and out. */
export const FILES = sh`
fetch_inputs() {
  n=0
  for into in $inputs; do
    insist GET "jobs/$job/inputs/$n" --max-time 3600 -o "$home/input.tar" || return 1
    target=$work unzip=
    case $into in
      root) target=$root/ ;;
      *.gz) unzip=-z ;;
    esac
    # shellcheck disable=SC2086 # Words, or none.
    if ! $as_job tar -x $unzip -p -f - -C "$target" <"$home/input.tar" 8>&- 9>&-; then
      insist POST "jobs/$job/refused" --data-binary "an input could not be unpacked"
      return 1
    fi
    rm -f "$home/input.tar"
    n=$((n + 1))
  done
}

# The daemon chooses from the list, and every answer names what it wants next. It knows what it has: after a cut
# the list is sent again, and only what is missing is asked for. An empty record says that the list is whole.
send_files() {
  (cd "$work" && list_details && printf '\0') | head -c 8388608 >"$run/files"
  tries=0
  while [ "$tries" -lt 20 ]; do
    insist POST "jobs/$job/files" --max-time 600 -H 'Content-Type: application/octet-stream' \
      --data-binary "@$run/files" -o "$run/wanted" || return
    while [ -s "$run/wanted" ] && send_wanted; do :; done
    [ -s "$run/wanted" ] || return
    tries=$((tries + 1))
    sleep 1
  done
}

# Sends one tar, read with the rights of the job. True when the answer has come; it takes the place of the names.
send_wanted() {
  (cd "$work" && pack <"$run/wanted") |
    {
      api PUT "jobs/$job/files" --max-time 3600 -T - -o "$run/wanted.new"
      # What is refused is not sent again.
      if disowned || [ "$status" = 413 ]; then : >"$run/wanted.new"
      elif [ "$status" != 200 ]; then exit 1; fi
      mv "$run/wanted.new" "$run/wanted"
    }
}
`
