import { sh } from './sh.ts'

/** What the command prints, in frames that are sent until they have arrived. */
export const OUTPUT = sh`
size() { stat -c %s "$1" 2>/dev/null || wc -c <"$1"; }

# Puts the next new bytes of a stream into a frame; false when there are none.
cut_frame() {
  [ -s "$home/$1" ] || return 1
  if [ "$as_it_is" = 1 ]; then
    frame=$1
    return
  fi
  if [ "$1" = stdout ]; then at=$out_at; else at=$err_at; fi
  frame_length=$(($(size "$home/$1") - at))
  [ "$frame_length" -gt 0 ] || return 1
  [ "$frame_length" -le "$chunk" ] || frame_length=$chunk
  if [ "$at" = 0 ]; then head -c "$frame_length" "$home/$1"; else tail -c "+$((at + 1))" "$home/$1" | head -c "$frame_length"; fi >"$run/frame"
  frame=$1
}

# Sends one frame. It is sent again until the daemon has it. False when it did not arrive.
# The first one is a file as it is: no program has to cut it, and the answer says how much it was. If it does not
# arrive, or is too much, it is cut like all others; the daemon knows by the offset what it has of it.
pump() {
  more=0
  if [ -z "$frame" ]; then
    # What was written last goes last; but a flood on one stream must not silence the other.
    # shellcheck disable=SC3013 # POSIX has it since 2024, and every shell since long before.
    if [ "$frame_length" -ge "$chunk" ]; then late=$last
    elif [ "$home/stderr" -ot "$home/stdout" ]; then late=stdout
    else late=stderr; fi
    if [ "$late" = stdout ]; then
      cut_frame stderr || cut_frame stdout || return 0
    else
      cut_frame stdout || cut_frame stderr || return 0
    fi
  elif [ "$as_it_is" = tried ]; then
    as_it_is=0
    cut_frame "$frame"
  fi
  if [ "$as_it_is" = 1 ]; then
    as_it_is=tried frame_length=0
    set -- -T "$home/$frame"
  else
    set -- --data-binary "@$run/frame"
  fi
  api POST "jobs/$job/output?stream=$frame&offset=$sent" --max-time 60 \
    -H 'Content-Type: application/octet-stream' "$@"
  [ "$status" = 200 ] || return 1
  next=\${body%% *}
  # Whoever answers something else is not the daemon.
  case $next in '' | *[!0-9]*) return 1 ;; esac
  [ $((next - sent)) -le "$frame_length" ] || frame_length=$((next - sent))
  sent=$next more=1 last=$frame frame='' as_it_is=0
  obey "\${body#* }"
  if [ "$last" = stdout ]; then out_at=$((out_at + frame_length)); else err_at=$((err_at + frame_length)); fi
  # What has arrived need not fill the disk.
  if [ "$frame_length" -ge "$chunk" ]; then
    [ "$out_at" -gt 0 ] && fallocate -p -o 0 -l "$out_at" "$home/stdout" 2>/dev/null
    [ "$err_at" -gt 0 ] && fallocate -p -o 0 -l "$err_at" "$home/stderr" 2>/dev/null
  fi
  return 0
}
`
