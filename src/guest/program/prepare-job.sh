# Prepares the environment of the next job while the machine is idle.

# Prepares everything that does not depend on the job, including the process that later becomes the job. This runs
# while the machine is idle, because starting programs takes most of the time.
prepare_process() {
  rm -f "$run/ended" "$run/timedout" "$run/stopped" "$run/pid" "$run/code" "$run/release" "$run/order" \
    "$run/out" "$run/err" "$home/stdout" "$home/stderr"
  : >"$home/stdout"
  : >"$home/stderr"
  # Named pipes: the command may reopen and truncate /dev/stdout, which must not truncate the stored output.
  mkfifo "$run/release" "$run/order" "$run/out" "$run/err"
  [ -z "$as_job" ] || chown "$uid:$gid" "$run/out" "$run/err"
  cat "$run/out" >>"$home/stdout" &
  out_cat=$!
  cat "$run/err" >>"$home/stderr" &
  err_cat=$!
  # Open for reading and writing so that open() does not block: some shells abort a blocked open when a child ends.
  exec 8<>"$run/order" 9<>"$run/release"
  hold_process &
  holder=$!
  prepared=1
}

# Succeeds if the prepared process is alive. A process left over from an earlier job may have killed it.
is_ready() {
  while [ ! -s "$run/pid" ] && kill -0 "$holder" 2>/dev/null; do sleep 0.02; done
  pid=
  [ -s "$run/pid" ] && read -r pid <"$run/pid"
  read_process_state
  [ "$state" != Z ]
}

# Kills the remaining processes of the command and collects its exit status.
reap() {
  : >"$run/ended"
  [ -z "$pid" ] || kill -s KILL -- "-$pid" 2>/dev/null
  echo >&9
  wait "$holder" 2>/dev/null
  exec 8>&- 9>&-
}

discard_process() {
  [ "$prepared" = 1 ] || return 0
  is_ready
  reap
  kill "$out_cat" "$err_cat" 2>/dev/null
  wait "$out_cat" "$err_cat" 2>/dev/null
  prepared=0
}

# Skip the deletion in an empty work directory, as in a new machine.
clear_workspace() {
  for entry in "$work"/* "$work"/.[!.]* "$work"/..?*; do
    if [ -e "$entry" ] || [ -L "$entry" ]; then
      find "$work" -mindepth 1 -delete 2>/dev/null
      return
    fi
  done
}
