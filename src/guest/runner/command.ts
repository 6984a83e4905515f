import { sh } from './sh.ts'

/** The command itself: its start, what the kernel says of it, and what it leaves running. */
export const COMMAND = sh`
# Runs as the job's user. Reads the order from its standard input, so that no secret is in an argument or on a
# disk, and becomes the job.
# shellcheck disable=SC2016 # It is for another shell to expand.
become='
set --
__e=
while read -r __k __a __b; do
  case $__k in
    env) __v=$__b ;;
    arg) __v=$__a ;;
    end) break ;;
    *) continue ;;
  esac
  case $__v in
    -) __v= ;;
    =*) __v=\${__v#=} ;;
    *)
      __v=$(printf %s "$__v" | base64 -d; echo x)
      __v=\${__v%x}
      ;;
  esac
  case $__k in
    env) __e="$__e $__a"; eval "__x_$__a=\$__v" ;;
    *) set -- "$@" "$__v" ;;
  esac
done
for __a in $__e; do
  eval "export $__a=\"\$__x_$__a\""
  unset "__x_$__a"
done
unset __k __a __b __v __e
exec "$@" </dev/null
'

# A core would bring what is in memory onto the disk; and when memory runs out, the job shall end, not we.
limits='ulimit -c 0; echo 500 2>/dev/null >/proc/self/oom_score_adj;'

# The parent of the job. It does not wait for it until told to: as long as the job is a zombie, the kernel
# tells exactly how it ended.
hold() {
  # shellcheck disable=SC2086 # $drop and $signals are words, or none.
  printf '%s\n' "$order" | setsid $drop /usr/bin/env $signals -i \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME="$work" USER="$user" LOGNAME="$user" LANG=C.UTF-8 DEPUTY_WORKSPACE="$work" \
    /bin/sh -c "$limits cd \"\$HOME\" || exit 126; $become" >"$run/out" 2>"$run/err" 9>&- &
  echo $! >"$run/pid"
  until read -r _ <&9 || [ -e "$run/ended" ]; do :; done
  wait $!
  echo $? >"$run/code"
}

# Field 52 of /proc/PID/stat is the status as wait(2) gives it.
look() {
  if ! read -r stat 2>/dev/null <"/proc/$pid/stat"; then
    state=Z exact=
    return
  fi
  # shellcheck disable=SC2086 # Its fields.
  set -- \${stat##*) }
  state=$1
  [ $# -ge 50 ] && shift 49
  exact=$1
}

# Ends what the command left running, and waits until nothing more can be printed.
sweep() {
  if [ -n "$drop" ] && [ "$keep" = 0 ]; then $drop /bin/sh -c 'kill -s KILL -- -1' 2>/dev/null; fi
  now
  end=$((now + 5))
  while now && [ "$now" -lt "$end" ]; do
    kill -0 "$out_cat" 2>/dev/null || kill -0 "$err_cat" 2>/dev/null || break
    sleep 0.1
  done
  kill "$out_cat" "$err_cat" 2>/dev/null
  wait "$out_cat" "$err_cat" 2>/dev/null
}
`
