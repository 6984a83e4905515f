# Sends the output of the command in frames.

size() { stat -c %s "$1" 2>/dev/null || wc -c <"$1"; }

# Puts the next new bytes of a stream into a frame; false when there are none.
next_frame() {
  [ -s "$home/$1" ] || return 1
  if [ "$send_whole_file" = 1 ]; then
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

# Sends one frame. Fails if it did not arrive; the next call sends it again, and the daemon recognises it by its offset.
# The first frame is the whole file: copying a part of it would start another program. If it does not arrive or is too
# large, it is sent in parts.
send_output() {
  more=0
  if [ -z "$frame" ]; then
    # Send the stream that was written to last at the end, unless it fills every frame.
    # shellcheck disable=SC3013 # POSIX has it since 2024, and every shell since long before.
    if [ "$frame_length" -ge "$chunk" ]; then late=$last
    elif [ "$home/stderr" -ot "$home/stdout" ]; then late=stdout
    else late=stderr; fi
    if [ "$late" = stdout ]; then
      next_frame stderr || next_frame stdout || return 0
    else
      next_frame stdout || next_frame stderr || return 0
    fi
  elif [ "$send_whole_file" = tried ]; then
    send_whole_file=0
    next_frame "$frame"
  fi
  if [ "$send_whole_file" = 1 ]; then
    send_whole_file=tried frame_length=0
    set -- -T "$home/$frame"
  else
    set -- --data-binary "@$run/frame"
  fi
  api POST "jobs/$job/output?stream=$frame&offset=$sent" --max-time 60 \
    -H 'Content-Type: application/octet-stream' "$@"
  [ "$status" = 200 ] || return 1
  next=${body%% *}
  # Anything but a number is not a response of the daemon.
  case $next in '' | *[!0-9]*) return 1 ;; esac
  [ $((next - sent)) -le "$frame_length" ] || frame_length=$((next - sent))
  sent=$next more=1 last=$frame frame='' send_whole_file=0
  apply_order "${body#* }"
  if [ "$last" = stdout ]; then out_at=$((out_at + frame_length)); else err_at=$((err_at + frame_length)); fi
  # Free the disk space of output that has arrived.
  if [ "$frame_length" -ge "$chunk" ]; then
    [ "$out_at" -gt 0 ] && fallocate -p -o 0 -l "$out_at" "$home/stdout" 2>/dev/null
    [ "$err_at" -gt 0 ] && fallocate -p -o 0 -l "$err_at" "$home/stderr" 2>/dev/null
  fi
  return 0
}
