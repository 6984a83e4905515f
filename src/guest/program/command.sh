# Starts the command, reads its state, and kills what it leaves running.

# Runs as the job's user. Reads the order from its standard input, so that no secret is in an argument or on a
# disk, and becomes the job.
# shellcheck disable=SC2016 # Another shell expands it.
job_script='
set --
__n="
" __k= __e=
while IFS= read -r __l; do
  case $__l in +*) __v=$__v$__n${__l#+}; continue ;; esac
  # This line begins a new value, so the previous value is complete.
  case $__k in
    env) __e="$__e $__a"; eval "__x_$__a=\$__v" ;;
    arg) set -- "$@" "$__v" ;;
  esac
  __k=${__l%% *} __v=${__l#* }
  case $__k in
    env) __a=${__v%% *} __v=${__v#* } ;;
    arg) ;;
    end) break ;;
    *) continue ;;
  esac
  case $__v in
    =*) __v=${__v#=} ;;
    *)
      __v=$(printf %s "$__v" | base64 -d; echo x)
      __v=${__v%x}
      ;;
  esac
done
# The runner has ended before it sent the order.
[ "$__k" = end ] || exit 125
cd "$HOME" || exit 126
for __a in $__e; do
  eval "export $__a=\"\$__x_$__a\""
  unset "__x_$__a"
done
unset __l __n __k __a __v __e
exec "$@" </dev/null
'

# No core dumps: they could contain secrets. When memory runs out, the kernel shall kill the job, not the runner.
limits='ulimit -c 0; echo 500 2>/dev/null >/proc/self/oom_score_adj;'

# Starts the process that becomes the job when it receives the order, and is its parent. The parent waits for the job
# only when asked to: as long as the job is a zombie, /proc shows its exact exit status.
hold_process() {
  # shellcheck disable=SC2086 # Unquoted on purpose: each expands to zero or more words.
  setsid $as_job /usr/bin/env $signals -i \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME="$work" USER="$user" LOGNAME="$user" LANG=C.UTF-8 DEPUTY_WORKSPACE="$work" \
    /bin/sh -c "$limits $job_script" <"$run/order" >"$run/out" 2>"$run/err" 8>&- 9>&- &
  echo $! >"$run/pid"
  # A reader sees end of file only when all writers have closed the pipe.
  exec 8>&- 9<"$run/release"
  until read -r _ <&9 || [ -e "$run/ended" ] || ! kill -0 $$ 2>/dev/null; do :; done
  wait $!
  echo $? >"$run/code"
}

# Field 52 of /proc/PID/stat is the status as wait(2) gives it.
read_process_state() {
  if [ -z "$pid" ] || ! read -r stat 2>/dev/null <"/proc/$pid/stat"; then
    state=Z wait_status=
    return
  fi
  # shellcheck disable=SC2086 # Unquoted on purpose: splits into fields.
  set -- ${stat##*) }
  state=$1
  [ $# -ge 50 ] && shift 49
  wait_status=$1
}

# Kills what the command left running, and waits until its output is closed.
kill_leftovers() {
  if [ -n "$as_job" ] && [ "$keep" = 0 ]; then $as_job /bin/sh -c 'kill -s KILL -- -1' 2>/dev/null; fi
  now
  end=$((now + 5))
  while now && [ "$now" -lt "$end" ]; do
    kill -0 "$out_cat" 2>/dev/null || kill -0 "$err_cat" 2>/dev/null || break
    sleep 0.1
  done
  kill "$out_cat" "$err_cat" 2>/dev/null
  wait "$out_cat" "$err_cat" 2>/dev/null
}
