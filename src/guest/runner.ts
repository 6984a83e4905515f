/**
 * The program inside a machine: POSIX shell and curl. It takes work from the guest listener (see protocol.ts),
 * runs it as an ordinary user, and reports output, files and end, through any cut of the network.
 */
export const RUNNER = `#!/bin/sh
# Deputy's runner. Takes work from the callback address, runs it as an ordinary user, reports what it did.
# Needs a POSIX shell, curl, and the usual small tools; nothing else.
set -u
umask 077
nl='
'
root=\${DEPUTY_ROOT:-}
home=$root/var/lib/deputy
run=$root/run/deputy
work=$root/work
user=\${DEPUTY_USER:-deputy}
chunk=1048576
patience=21600
export LC_ALL=C

mkdir -p "$home" "$run" "$work" "$root/tmp"
# Two runners would take each other's work.
mkdir "$run/lock" 2>/dev/null || exit 0

log() { echo "deputy: $*" >&2; }

# Seconds since boot: a clock that nobody sets.
now() { read -r now _ </proc/uptime; now=\${now%%.*}; }

power_off() {
  log "switching off: $1"
  rm -rf "$run" "$home/callback"
  sync
  poweroff || systemctl poweroff || halt -p
  exit 0
}

# The token goes into a file of root's on a memory disk, never on a command line.
connect() {
  {
    read -r url
    read -r token
    read -r pem
  } <"$home/callback" || exit 1
  {
    echo silent
    echo 'connect-timeout = 5'
    echo "header = \\"Authorization: Bearer $token\\""
    echo 'header = "Expect:"'
    [ "$pem" = - ] || echo "cacert = \\"$pem\\""
  } >"$run/curl"
  if [ "$url" = mailbox ]; then
    box=$run/box chunk=262144
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
    return
  fi
  if body=$(curl -K "$run/curl" -X "$method" -w '\\n%{http_code}' "$@" "$url/guest/v1/$path" 2>/dev/null); then
    status=\${body##*"$nl"}
    body=\${body%"$nl"*}
  else
    status=000
  fi
}

# Without a network the daemon comes for the request, and leaves the answer, through the guest agent.
mail() {
  letter=/dev/null save=
  while [ $# -gt 0 ]; do
    case $1 in
      --data-binary)
        case $2 in
          @*) letter=\${2#@} ;;
          *)
            printf %s "$2" >"$run/letter"
            letter=$run/letter
            ;;
        esac
        shift
        ;;
      -T)
        cat >"$run/letter"
        letter=$run/letter
        shift
        ;;
      -o)
        save=$2
        shift
        ;;
      -d | -H | --max-time) shift ;;
    esac
    shift
  done
  rm -f "$box/answer"
  {
    echo "$method $path $token"
    cat "$letter"
  } >"$box/new"
  mv "$box/new" "$box/request"
  now
  mail_end=$((now + 600)) status=000 body=
  while [ ! -e "$box/answer" ] && now && [ "$now" -lt "$mail_end" ]; do sleep 0.1; done
  rm -f "$box/request"
  [ -e "$box/answer" ] || return 0
  read -r status <"$box/answer"
  if [ -n "$save" ]; then
    tail -n +2 "$box/answer" >"$save"
  else
    body=$(tail -n +2 "$box/answer" && echo x)
    body=\${body%x}
  fi
  rm -f "$box/answer"
}

# The daemon does not know us any more: nobody waits for what we do.
disowned() {
  case $status in 401 | 403 | 404 | 410) return 0 ;; esac
  return 1
}

size() { stat -c %s "$1" 2>/dev/null || wc -c <"$1"; }

prepare_user() {
  drop=
  # A shell makes its background jobs deaf to these, and what is ignored stays ignored.
  signals=--default-signal=INT,QUIT
  /usr/bin/env "$signals" true 2>/dev/null || signals=
  [ "$user" != - ] && [ "$(id -u)" = 0 ] || return 0
  id "$user" >/dev/null 2>&1 || useradd -m -s /bin/sh "$user" 2>/dev/null ||
    adduser -D -s /bin/sh "$user" >/dev/null 2>&1 || user=nobody
  uid=$(id -u "$user") gid=$(id -g "$user")
  chown "$uid:$gid" "$work"
  if command -v setpriv >/dev/null 2>&1; then
    drop="setpriv --reuid=$uid --regid=$gid --clear-groups --no-new-privs"
  elif command -v runuser >/dev/null 2>&1; then
    drop="runuser -u $user --"
  else
    log 'neither setpriv nor runuser: the job would run as root'
    return 1
  fi
}

# The value of a field of the work order.
field() {
  field=\${body#*"$nl$1 "}
  if [ "$field" = "$body" ]; then field=; else field=\${field%%"$nl"*}; fi
}

# Runs as the job's user. Reads the order from its standard input, so that no secret is in an argument or on a
# disk, and becomes the job.
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
  if [ "$__v" = - ]; then __v=
  else
    __v=$(printf %s "$__v" | /usr/bin/env base64 -d; echo x)
    __v=\${__v%x}
  fi
  case $__k in
    env) __e="$__e $__a"; eval "__x_$__a=\\$__v" ;;
    *) set -- "$@" "$__v" ;;
  esac
done
for __a in $__e; do
  eval "export $__a=\\"\\$__x_$__a\\""
  unset "__x_$__a"
done
unset __k __a __b __v __e
exec "$@" </dev/null
'

# The parent of the job. It does not wait for it until told to: as long as the job is a zombie, the kernel
# tells exactly how it ended.
hold() {
  printf '%s\\n' "$order" | setsid $drop /usr/bin/env $signals -i \\
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
    HOME="$work" USER="$user" LOGNAME="$user" LANG=C.UTF-8 DEPUTY_WORKSPACE="$work" \\
    /bin/sh -c "cd \\"\\$HOME\\" || exit 126; $become" >"$run/out" 2>"$run/err" &
  echo $! >"$run/pid.new"
  mv "$run/pid.new" "$run/pid"
  read -r _ <"$run/release"
  wait $!
  echo $? >"$run/code"
}

# Field 52 of /proc/PID/stat is the status as wait(2) gives it.
look() {
  if ! read -r stat 2>/dev/null <"/proc/$pid/stat"; then
    state=Z exact=
    return
  fi
  set -- \${stat##*) }
  state=$1
  [ $# -ge 50 ] && shift 49
  exact=$1
}

end_job() {
  kill -s TERM -- "-$pid" 2>/dev/null
  now
  end=$((now + grace))
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$end" ]; do sleep 0.2; done
  [ -e "$run/ended" ] || kill -s KILL -- "-$pid" 2>/dev/null
}

# Ends the job in time whatever the network does.
watch_clock() {
  now
  due=$((now + timeout))
  while [ ! -e "$run/ended" ] && now && [ "$now" -lt "$due" ]; do sleep 0.5; done
  [ -e "$run/ended" ] && return
  : >"$run/timedout"
  end_job
}

# Puts the next new bytes of a stream into a frame; false when there are none.
cut_frame() {
  if [ "$1" = stdout ]; then at=$out_at; else at=$err_at; fi
  frame_length=$(($(size "$home/$1") - at))
  [ "$frame_length" -gt 0 ] || return 1
  [ "$frame_length" -le "$chunk" ] || frame_length=$chunk
  tail -c "+$((at + 1))" "$home/$1" | head -c "$frame_length" >"$run/frame"
  frame=$1
}

# Sends one frame. It is sent again, unchanged, until the daemon has it. False when it did not arrive.
pump() {
  more=0
  if [ -z "$frame" ]; then
    # What was written last goes last; but a flood on one stream must not silence the other.
    if [ "$frame_length" -ge "$chunk" ]; then late=$last
    elif [ "$home/stderr" -ot "$home/stdout" ]; then late=stdout
    else late=stderr; fi
    if [ "$late" = stdout ]; then
      cut_frame stderr || cut_frame stdout || return 0
    else
      cut_frame stdout || cut_frame stderr || return 0
    fi
  fi
  api POST "jobs/$job/output?stream=$frame&offset=$sent" --max-time 60 \\
    -H 'Content-Type: application/octet-stream' --data-binary "@$run/frame"
  [ "$status" = 200 ] || return 1
  sent=\${body%% *} more=1 last=$frame frame=
  obey "\${body#* }"
  if [ "$last" = stdout ]; then out_at=$((out_at + frame_length)); else err_at=$((err_at + frame_length)); fi
  # What has arrived need not fill the disk.
  if [ "$frame_length" -ge "$chunk" ]; then
    [ "$out_at" -gt 0 ] && fallocate -p -o 0 -l "$out_at" "$home/stdout" 2>/dev/null
    [ "$err_at" -gt 0 ] && fallocate -p -o 0 -l "$err_at" "$home/stderr" 2>/dev/null
  fi
  return 0
}

obey() {
  [ "$1" = stop ] && [ ! -e "$run/stopped" ] || return 0
  : >"$run/stopped"
  end_job &
}

# Repeats until the daemon has answered; false when it disowned us or was silent for too long.
insist() {
  now
  giveup=$((now + patience)) pause=1
  while :; do
    api "$@"
    [ "$status" = 200 ] && return 0
    disowned && return 1
    now
    [ "$now" -lt "$giveup" ] || return 1
    sleep "$pause"
    [ "$pause" -ge 8 ] || pause=$((pause * 2))
  done
}

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
    (cd "$work" && $drop find . -xdev ! -type d -printf '%y %s %P\\0' 2>/dev/null)
  else
    (cd "$work" && $drop find . -xdev -type f -print0 2>/dev/null)
  fi | head -c 8388608 >"$run/files"
  insist POST "jobs/$job/files" --max-time 120 -H 'Content-Type: application/octet-stream' \\
    --data-binary "@$run/files" || return
  printf '%s\\n' "$body" >"$run/wanted"
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

# Ends what the command left running, and waits until nothing more can be printed.
sweep() {
  if [ -n "$drop" ] && [ "$keep" = 0 ]; then $drop /bin/kill -s KILL -- -1 2>/dev/null; fi
  now
  end=$((now + 5))
  while now && [ "$now" -lt "$end" ]; do
    kill -0 "$out_cat" 2>/dev/null || kill -0 "$err_cat" 2>/dev/null || break
    sleep 0.1
  done
  kill "$out_cat" "$err_cat" 2>/dev/null
  wait "$out_cat" "$err_cat" 2>/dev/null
}

run_job() {
  order=$body
  body=$nl$body
  field job && job=$field
  field timeout && timeout=$field
  field grace && grace=$field
  field heartbeat && beat=$field
  field artifacts && artifacts=$field
  field continues && continues=$field
  field keep && keep=$field
  inputs=
  rest=$body
  while :; do
    case $rest in *"\${nl}input "*) rest=\${rest#*"\${nl}input "} inputs="$inputs \${rest%%"$nl"*}" ;; *) break ;; esac
  done
  rm -f "$run/ended" "$run/timedout" "$run/stopped" "$run/pid" "$run/code" "$run/release" "$run/out" "$run/err" "$home/stdout" "$home/stderr"
  if [ "$continues" = 0 ]; then find "$work" -mindepth 1 -delete 2>/dev/null; fi
  : >"$home/stdout"
  : >"$home/stderr"
  # Pipes with a name: the command may open /dev/stdout again, and what it then truncates is no file of ours.
  mkfifo "$run/release" "$run/out" "$run/err"
  [ -z "$drop" ] || chown "$uid:$gid" "$run/out" "$run/err"
  sent=0 out_at=0 err_at=0 frame= frame_length=0 last= exact=
  body=
  fetch_inputs || return
  if ! insist POST "jobs/$job/started" -d ''; then
    sleep 1
    return
  fi
  sent=\${body%% *}
  cat "$run/out" >>"$home/stdout" &
  out_cat=$!
  cat "$run/err" >>"$home/stderr" &
  err_cat=$!
  hold &
  holder=$!
  order=
  while [ ! -s "$run/pid" ]; do sleep 0.02; done
  read -r pid <"$run/pid"
  now
  began=$now next_beat=$now
  watch_clock &
  while :; do
    look
    [ "$state" = Z ] && break
    now
    if [ "$now" -ge "$next_beat" ]; then
      api POST "jobs/$job/heartbeat" --max-time 20 -d ''
      if [ "$status" = 200 ]; then obey "$body"; elif disowned; then break; fi
      next_beat=$((now + beat))
    fi
    if ! pump && disowned; then break; fi
    [ "$more" = 1 ] || sleep 0.2
  done
  : >"$run/ended"
  kill -s KILL -- "-$pid" 2>/dev/null
  echo >"$run/release"
  wait "$holder" 2>/dev/null
  sweep
  code=
  [ -r "$run/code" ] && read -r code <"$run/code"
  report
}

# Everything that was printed first, then the files, then the end.
report() {
  now
  giveup=$((now + patience))
  while :; do
    if pump; then
      [ "$more" = 1 ] || break
    else
      disowned && return
      now
      [ "$now" -lt "$giveup" ] || return
      sleep 1
    fi
  done
  [ "$artifacts" = 1 ] && send_artifacts
  signal=0
  if [ -n "$exact" ] && [ "$exact" != 0 ]; then
    signal=$((exact & 127)) code=$((exact >> 8 & 255))
  fi
  why=
  [ -e "$run/timedout" ] && why=timeout
  [ -z "$why" ] && [ -e "$run/stopped" ] && why=stopped
  insist POST "jobs/$job/exit?code=\${code:-255}&signal=$signal&ended=$why" -d '' || return
  [ "$body" = wait ] || power_off 'the job is done'
}

prepare_user || power_off 'no way to give up root'
connect
silent_since=
while :; do
  api GET work --max-time 90
  case $status in
    200)
      silent_since=
      # A cut transfer lacks the last line.
      case $body in
        *"\${nl}end$nl") run_job ;;
        *) sleep 1 ;;
      esac
      ;;
    204) silent_since= ;;
    *)
      disowned && power_off 'this machine is not wanted any more'
      now
      : "\${silent_since:=$now}"
      [ $((now - silent_since)) -lt "$patience" ] || power_off 'nobody answers'
      sleep 1
      ;;
  esac
done
`
