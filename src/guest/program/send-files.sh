# Inputs of the job, and the files that it leaves.

fetch_inputs() {
  n=0
  for into in $inputs; do
    retry_api GET "jobs/$job/inputs/$n" --max-time 3600 -o "$home/input.tar" || return 1
    target=$work unzip=
    case $into in
      root) target=$root/ ;;
      *.gz) unzip=-z ;;
    esac
    # shellcheck disable=SC2086 # Unquoted on purpose: expands to zero or more words.
    if ! $as_job tar -x $unzip -p -f - -C "$target" <"$home/input.tar" 8>&- 9>&-; then
      retry_api POST "jobs/$job/refused" --data-binary "an input could not be unpacked"
      return 1
    fi
    rm -f "$home/input.tar"
    n=$((n + 1))
  done
}

# Sends the list of files; each response names the files to send next. After a lost connection the list is sent again,
# and the daemon requests only what is missing. An empty record marks a complete list.
send_files() {
  (cd "$work" && list_details && printf '\0') | head -c 8388608 >"$run/files"
  tries=0
  while [ "$tries" -lt 20 ]; do
    retry_api POST "jobs/$job/files" --max-time 600 -H 'Content-Type: application/octet-stream' \
      --data-binary "@$run/files" -o "$run/wanted" || return
    while [ -s "$run/wanted" ] && send_wanted; do :; done
    [ -s "$run/wanted" ] || return
    tries=$((tries + 1))
    sleep 1
  done
}

# Sends the requested files as a tar, read as the user of the job. The response replaces the names.
send_wanted() {
  (cd "$work" && pack <"$run/wanted") |
    {
      api PUT "jobs/$job/files" --max-time 3600 -T - -o "$run/wanted.new"
      # Do not send again what the daemon refused.
      if is_dismissed || [ "$status" = 413 ]; then : >"$run/wanted.new"
      elif [ "$status" != 200 ]; then exit 1; fi
      mv "$run/wanted.new" "$run/wanted"
    }
}
