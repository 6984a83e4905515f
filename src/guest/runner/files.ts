import { sh } from './sh.ts'

/** Files on their way in and out. */
export const FILES = sh`
fetch_inputs() {
  n=0
  for into in $inputs; do
    insist GET "jobs/$job/inputs/$n" --max-time 3600 -o "$home/input.tar" || return 1
    chmod 0644 "$home/input.tar"
    target=$work
    [ "$into" = root ] && target=$root/
    if ! $drop tar -x -p -f - -C "$target" <"$home/input.tar"; then
      insist POST "jobs/$job/refused" --data-binary "an input could not be unpacked"
      return 1
    fi
    rm -f "$home/input.tar"
    n=$((n + 1))
  done
}

# The daemon chooses from the list; the files are read with the rights of the job.
send_artifacts() {
  if find / -maxdepth 0 -printf '' 2>/dev/null; then
    (cd "$work" && $drop find . -xdev ! -type d -printf '%y %s %P\0' 2>/dev/null)
  else
    (cd "$work" && $drop find . -xdev -type f -print0 2>/dev/null)
  fi | head -c 8388608 >"$run/files"
  insist POST "jobs/$job/files" --max-time 120 -H 'Content-Type: application/octet-stream' \
    --data-binary "@$run/files" || return
  printf '%s\n' "$body" >"$run/wanted"
  while read -r name; do
    [ -n "$name" ] || continue
    file=$(printf %s "$name" | tr '_-' '/+' | base64 -d; echo x)
    file=\${file%x}
    (cd "$work" && $drop test -f "./$file" && $drop test -r "./$file" && $drop test ! -L "./$file") || continue
    tries=0
    while [ "$tries" -lt 5 ]; do
      (cd "$work" && $drop cat "./$file") |
        {
          api PUT "jobs/$job/artifacts/$name" --max-time 3600 -T -
          [ "$status" = 200 ] || disowned || [ "$status" = 413 ]
        } && break
      tries=$((tries + 1))
      sleep 1
    done
  done <"$run/wanted"
}
`
