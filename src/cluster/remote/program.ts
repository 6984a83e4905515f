/**
 * The program that holds a command on a node: POSIX sh, nothing installed, sent whole with every request. Only its
 * last line calls anything, so a request cut in the middle does nothing.
 *
 * A command has a directory of its own, made with one `mkdir`: whoever makes it starts the command, everybody else
 * follows, which is what makes a start happen at most once. The supervisor is a subshell that outlives the
 * connection. Output goes to files; a follower sends it in frames and notes in `index` the order it chose, so that
 * one number, the bytes sent so far, is enough to go on from after a cut.
 *
 * Frames on stdout after the line `<mark>`:
 *   s 0|1            found running | started now       o N / e N   N bytes of stdout / stderr follow
 *   x CODE HOW FROM TO   ended                         d N         N bytes were printed and not kept
 *   h                still there
 *   l WHY            lost, or may have run             n WHY       did not start, and never will under this id
 *   q                another follower took over        f WHY       could not be started: something is wrong there
 * and in answer to the short verbs:
 *   k N PIDS         cancel: N processes survived      k ID PIDS   remove, release: these survived, nothing is deleted
 *   g ID             remove, release: it is gone       w ID TIME   claims: a workspace, and when it was made
 *   j ID STATE TIME  list: a command, running, ended or lost
 */
const SOURCE = `
umask 077
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
for d in /opt/homebrew/bin "$HOME/.local/bin" "$HOME/.cargo/bin"; do
  [ -d "$d" ] && case ":$PATH:" in *":$d:"*) ;; *) PATH="$PATH:$d" ;; esac
done
export PATH
base="$HOME/.cache/deputy/$D_OWNER/jobs"
work="$HOME/.cache/deputy/$D_OWNER/work"
boot=- whole=
[ -r /proc/sys/kernel/random/boot_id ] && read -r boot < /proc/sys/kernel/random/boot_id

# Every process of a job: its session or group, what descends from it or was adopted by what holds it, and what still
# carries its mark; then the same without the box around it, which would take all inside along before they have been
# asked. Numbers are reused: the group counts only while its first process is the one it was, or one with the mark is
# in it.
members() {
  root= b= t= sure= under= kind=
  read -r root b t 2>/dev/null < "$1/cpid"
  same "$root" "$b" "$t" && sure=1
  b= t=
  read -r under b t kind 2>/dev/null < "$1/super"
  [ "$kind" = tree ] && same "$under" "$b" "$t" || under=
  if [ -r /proc/self/stat ]; then
    marked=" $(grep -l $whole "DEPUTY_JOB=$2" /proc/[0-9]*/environ 2>/dev/null | tr '\\n' ' ')"
    table=
    for f in /proc/[0-9]*/stat; do
      read -r line 2>/dev/null < "$f" || continue
      pid=\${line%% *}
      set -- \${line##*) }
      [ "$1" = Z ] && continue
      case $marked in *" /proc/$pid/environ "*) m=1 ;; *) m=0 ;; esac
      case $line in *'(bwrap) '*) m="$m box" ;; esac
      table="$table$pid $2 $3 $4 $m
"
    done
  else
    marks=$(ps -A -E -o pid= -o command= 2>/dev/null | grep -F "DEPUTY_JOB=$2" | grep -v grep | awk '{print $1}' | tr '\\n' ' ')
    table=$(ps -A -o pid= -o ppid= -o pgid= -o stat= | awk -v marks=" $marks" '$4 !~ /^Z/ {print $1, $2, $3, $3, index(marks, " " $1 " ") ? 1 : 0}')
  fi
  printf '%s' "$table" | awk -v root="$root" -v sure="$sure" -v under="$under" -v me="$$" '
    {
      pid[NR] = $1; parent[$1] = $2; group[$1] = $3; session[$1] = $4; box[$1] = $6
      if ($5 == 1) { in_[$1] = 1; if (root != "" && ($3 == root || $4 == root)) sure = 1 }
    }
    END {
      for (i = 1; i <= NR; i++) {
        p = pid[i]
        if (sure && root != "" && (p == root || group[p] == root || session[p] == root)) in_[p] = 1
        if (under != "" && parent[p] == under && p != me) in_[p] = 1
      }
      do { more = 0; for (i = 1; i <= NR; i++) if (!in_[pid[i]] && in_[parent[pid[i]]] && pid[i] != me) { in_[pid[i]] = 1; more = 1 } } while (more)
      for (i = 1; i <= NR; i++) if (in_[pid[i]] && pid[i] != me && pid[i] > 1) { all = all pid[i] " "; if (box[pid[i]] == "") soft = soft pid[i] " " }
      printf "%s|%s", all, soft
    }'
}

# How to find a mark: whole where grep can, so that no id is found in a longer one. Found out once a request.
exact() {
  [ -n "$whole" ] && return
  if printf 'a\\0b\\0' | grep -qzxF b 2>/dev/null; then whole=-zxF; else whole=-F; fi
}

# TERM, a grace, then KILL until nothing is left; prints what survived.
slay() {
  exact
  found=$(members "$1" "$2")
  left=\${found%%|*} soft=\${found#*|}
  [ -n "$soft" ] && kill -TERM $soft 2>/dev/null
  n=0
  while [ -n "$left" ] && [ "$n" -lt 60 ]; do
    [ "$n" -ge "$3" ] && kill -KILL $left 2>/dev/null
    sleep 0.1 2>/dev/null || sleep 1
    found=$(members "$1" "$2")
    left=\${found%%|*}
    n=$((n + 1))
  done
  printf '%s' "$left"
}

# Shells start what is in the background with INT and QUIT ignored, and a command expects them as usual.
# What this node has against it is found out once.
signals() {
  sig=
  read -r sig 2>/dev/null < "$base/../signals" && return
  if env --default-signal=INT,QUIT true 2>/dev/null; then sig=env; elif command -v perl >/dev/null 2>&1; then sig=perl; else sig=none; fi
  echo "$sig" > "$base/../signals"
}

# detach HOW COMMAND...: no variable of its own, as they are those of the command by now.
detach() {
  if [ "$1" = env ] && command -v setsid >/dev/null 2>&1; then shift; exec env --default-signal=INT,QUIT setsid "$@"; fi
  if [ "$1" != none ] && command -v perl >/dev/null 2>&1; then
    shift
    exec perl -e 'use POSIX; $SIG{INT} = $SIG{QUIT} = "DEFAULT"; POSIX::setsid(); exec @ARGV; exit 127' "$@"
  fi
  shift
  if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
  exec "$@"
}

myself() {
  if [ -r /proc/self/stat ]; then read -r me _ < /proc/self/stat; else me=$(exec sh -c 'echo $PPID'); fi
}

# Tells one life of a process number from the next: sets born.
birth() {
  born=
  if [ -r /proc/self/stat ]; then
    read -r line 2>/dev/null < "/proc/$1/stat" || return
    set -- \${line##*) }
    shift 19
    born=$1
  else born=$(ps -o lstart= -p "$1" 2>/dev/null | tr -d ' \\n'); fi
}

# same PID BORN BOOT: is it alive, and the one it was?
same() {
  [ -n "$1" ] && [ -n "$2" ] && [ "\${3:-$boot}" = "$boot" ] && kill -0 "$1" 2>/dev/null && birth "$1" && [ "$born" = "$2" ]
}

# When the command began and ended, for a caller who did not see it.
clock() {
  from=$(modified "$dir/cpid") to=$(modified "$dir/exit")
}

modified() {
  date -r "$1" +%s 2>/dev/null || stat -f %m "$1" 2>/dev/null || echo 0
}

wake() {
  f=
  read -r f 2>/dev/null < "$dir/follower"
  [ -n "$f" ] && kill -USR1 "$f" 2>/dev/null
}

# The command writes into pipes, not files: what opens /dev/stdout anew must not find a file to cut short.
supervise() {
  trap '' HUP
  { body | { store err; } 3>&-; } 3>&1 | { store out; }
}

# store FILE: no more of a stream than is kept of it, or than the disk takes; the rest is read and counted.
store() {
  (ulimit -c 0; ulimit -f $((\${D_KEEP%% *} / 512 + \${D_KEEP#* } / 512)); exec cat > "$dir/$1")
  lost=$(($(wc -c)))
  [ "$lost" -gt 0 ] && printf '%-15s\\n' "$lost" 1<> "$dir/$1.lost"
  true > "$dir/$1.end"
  wake
}

body() {
  myself
  birth "$me"
  printf '%s %s %s\\n' "$me" "$born" "$boot" > "$dir/super"
  shell=sh
  command -v bash > /dev/null && shell=bash
  signals
  (
    exec 2>&1 1>&3 3>&-
    trap - HUP
    cd "$D_CWD" || exit 126
    umask 022
    set -- "$sig" "$shell" "$dir/cmd" "$D_ID"
    eval "$D_ENV"
    DEPUTY_JOB=$4
    export DEPUTY_JOB
    detach "$1" "$2" "$3"
  ) < /dev/null &
  c=$!
  # From here on the command alone keeps the pipes open.
  exec 3>&- > /dev/null 2>&1
  birth "$c"
  printf '%s %s %s\\n' "$c" "$born" "$boot" > "$dir/cpid"
  # Whoever cancels writes first and looks for the number then: one of both sees the other.
  if ! [ -d "$dir" ]; then kill -KILL "$c" "-$c"; elif [ -e "$dir/cancelled" ]; then (slay "$dir" "$D_ID" "$D_GRACE") & fi
  w=
  if [ "$D_TIMEOUT" != 0 ]; then
    (
      trap 'kill "$s" 2>/dev/null; exit 0' TERM
      sleep "$D_TIMEOUT" &
      s=$!
      wait "$s"
      trap '' TERM
      true > "$dir/timedout"
      slay "$dir" "$D_ID" "$D_GRACE" > /dev/null
    ) &
    w=$!
  fi
  wait "$c"
  code=$?
  [ -n "$w" ] && kill -TERM "$w" 2>/dev/null
  # In place, so that a full disk cannot take the one thing that must be kept.
  printf '%-7s\\n' "$code" 1<> "$dir/exit"
  wake
}

# In a session that was opened ahead: have everything ready, and wait for a request.
standby() {
  if command -v perl >/dev/null 2>&1; then
    D_STANDBY=1
    export D_STANDBY D_OWNER D_PROGRAM D_HOLDER
    exec perl -e "$D_HOLDER"
  fi
  echo 'deputy-standby sh'
}

run() {
  dir="$base/$D_ID"
  case $D_CWD in '' | /*) ;; *) D_CWD="$HOME/$D_CWD" ;; esac
  if [ -z "$D_PLAIN" ] && ! [ -d "$dir" ] && command -v perl >/dev/null 2>&1; then
    export D_OWNER D_ID D_CMD D_ARGX D_ENVX D_CWD D_WORK D_MEMO D_TIMEOUT D_GRACE D_KEEP D_FROM D_PROGRAM D_HOLDER
    exec perl -e "$D_HOLDER"
  fi
  own=
  if [ -n "$D_WORK" ]; then own=1 D_CWD="$work/$D_WORK"; elif [ -z "$D_CWD" ]; then own=1 D_CWD="$dir/work"; fi
  trap 'woken=1' USR1
  if mkdir "$dir" 2>/dev/null || { mkdir -p "$base" "$work" 2>/dev/null && mkdir "$dir" 2>/dev/null; }; then
    [ -n "$own" ] && ! [ -d "$D_CWD" ] && mkdir "$D_CWD" 2>/dev/null
    if printf '%-7s\\n' '' > "$dir/exit" && printf '%s\\n' "$D_CMD" > "$dir/cmd" && printf '%s' "$D_MEMO" > "$dir/memo" && printf '%-15s\\n' '' > "$dir/out.lost" && printf '%-15s\\n' '' > "$dir/err.lost" && true > "$dir/index"; then
      printf '%s\\n' "$$" > "$dir/follower"
      (supervise) < /dev/null > /dev/null 2>&1 &
      echo 's 1'
      fast=1
    else
      rm -rf "$dir"
      echo "f the node could not write to $base (is its disk full?)"
      return
    fi
  elif [ -d "$dir" ]; then
    begun || return
    printf '%s\\n' "$$" > "$dir/follower"
    echo 's 0'
    by_holder
  else
    echo "f the node could not make $dir (is its disk full or read-only?)"
    return
  fi
  follow
}

attach() {
  dir="$base/$D_ID"
  trap 'woken=1' USR1
  bury && { echo 'n the node does not know this command'; return; }
  [ -d "$dir" ] || { echo "l the node could not look for it in $base (is its disk full or read-only?)"; return; }
  begun || return
  printf '%s\\n' "$$" > "$dir/follower"
  echo 's 0'
  by_holder
  follow
}

# What was started by the other holder is followed by it.
by_holder() {
  [ -e "$dir/ring" ] || return 0
  D_FOLLOW=1
  export D_FOLLOW D_OWNER D_ID D_FROM
  command -v perl >/dev/null 2>&1 && exec perl -e "$D_HOLDER"
  echo 'l the node has no perl any more, which the command was started with'
  exit
}

# Where the node knows nothing of a command: a request that is still on its way, however late, finds this and ends.
bury() {
  mkdir "$dir" 2>/dev/null || { mkdir -p "$base" "$work" 2>/dev/null && mkdir "$dir" 2>/dev/null; } || return 1
  true > "$dir/never"
}

# Whoever made the directory may still be writing it down. After a power cut it may be there in part for ever.
begun() {
  n=0
  until [ -e "$dir/index" ]; do
    [ -e "$dir/never" ] && { echo 'n it was given up before it reached the node'; return 1; }
    [ -d "$dir" ] || { echo 'l it was removed from the node'; return 1; }
    [ "$n" -ge 150 ] && { echo 'l only a part of its record is left on the node (was its power cut?)'; return 1; }
    sleep 0.02 2>/dev/null || { sleep 1; n=$((n + 50)); }
    n=$((n + 1))
  done
}

# send STREAM FILE FROM COUNT
send() {
  printf '%s %s\\n' "$1" "$4"
  if [ "$3" = 0 ]; then head -c "$4" "$dir/$2"; else tail -c +$(($3 + 1)) "$dir/$2" | head -c "$4"; fi
}

# Sends, in the order of the index, what the caller has not seen. Neighbours of one kind go together: each that is
# sent takes two processes.
replay() {
  run= sum=0
  while read -r kind count <&8; do
    if [ "$kind" = "$run" ]; then sum=$((sum + count)); continue; fi
    passed
    run=$kind sum=$count
  done
  passed
}

passed() {
  [ "$sum" -gt 0 ] || return 0
  skip=$((D_FROM - seen))
  [ "$skip" -lt 0 ] && skip=0
  if [ "$skip" -lt "$sum" ]; then
    case $run in o) send o out $((out + skip)) $((sum - skip)) ;; e) send e err $((err + skip)) $((sum - skip)) ;; *) echo "d $((sum - skip))" ;; esac
  fi
  seen=$((seen + sum))
  case $run in o) out=$((out + sum)) ;; e) err=$((err + sum)) ;; esac
}

# What was not kept is told when all else is.
losses() {
  for s in out err; do
    lost=
    read -r lost 2>/dev/null < "$dir/$s.lost"
    [ -n "$lost" ] && rm -f "$dir/$s.lost" && echo "d $lost" >> "$dir/index" && echo "d $lost"
  done
}

news() {
  if [ -s "$dir/out" ]; then
    size=$(($(wc -c < "$dir/out")))
    if [ "$size" -gt "$out" ]; then
      echo "o $((size - out))" >> "$dir/index"
      send o out "$out" $((size - out))
      out=$size fresh=1
    fi
  fi
  if [ -s "$dir/err" ]; then
    size=$(($(wc -c < "$dir/err")))
    if [ "$size" -gt "$err" ]; then
      echo "e $((size - err))" >> "$dir/index"
      send e err "$err" $((size - err))
      err=$size fresh=1
    fi
  fi
}

follow() {
  seen=0 out=0 err=0
  exec 8< "$dir/index"
  replay
  polls=0 quiet=0 late=0
  while :; do
    fresh=0 code= whole=
    read -r code < "$dir/exit"
    if [ -n "$code" ]; then
      # All is written when the pipes are closed; what a command left running may keep them open for ever.
      [ -e "$dir/out.end" ] && [ -e "$dir/err.end" ] && whole=1
      late=$((late + 1))
      [ "$late" -gt 15 ] && whole=1
    fi
    news
    if [ -n "$whole" ]; then
      losses
      how=exit from=0 to=0
      [ "$fast" = 1 ] || clock
      [ -e "$dir/timedout" ] && how=timeout
      [ -e "$dir/cancelled" ] && how=cancel
      echo "x $code $how \${from:-0} \${to:-0}"
      return
    fi
    f=
    read -r f 2>/dev/null < "$dir/follower"
    [ -d "$dir" ] || { echo 'l it was removed from the node'; return; }
    [ -z "$f" ] || [ "$f" = "$$" ] || { echo q; return; }
    polls=$((polls + 1))
    if [ $((polls % 16)) = 0 ]; then
      check_super || return
      kill -0 "$PPID" 2>/dev/null || return
      echo h
    fi
    if [ "$fresh" = 1 ]; then quiet=0; else quiet=$((quiet + 1)); fi
    # Eager at first: most commands are short, and the order of the two streams is as good as the naps are short.
    if [ "$polls" -lt 200 ] && [ "$quiet" -lt 25 ]; then nap=0.02; elif [ "$quiet" -lt 60 ]; then nap=0.1; else nap=0.25; fi
    woken=
    sleep "$nap" 2>/dev/null &
    z=$!
    # Cut short by a signal, or a sleep that knows no fractions.
    wait "$z" || { kill "$z" 2>/dev/null; [ -n "$woken" ] || sleep 1; }
  done
}

check_super() {
  s= b= t=
  read -r s b t _ 2>/dev/null < "$dir/super"
  if [ -z "$s" ]; then
    [ "$polls" -lt 64 ] && return 0
    echo 'l the node stopped while the command was being started (was its power cut?)'
    return 1
  fi
  same "$s" "$b" "$t" && return 0
  code=
  read -r code < "$dir/exit"
  [ -n "$code" ] && return 0
  echo 'l the node ended everything that ran on it (a reboot, or somebody killed it)'
  return 1
}

cancel() {
  dir="$base/$D_ID"
  bury || [ -e "$dir/never" ] || ! [ -d "$dir" ] && { echo 'k 0'; return; }
  true > "$dir/cancelled"
  left=$(slay "$dir" "$D_ID" "$D_GRACE")
  set -- $left
  echo "k $# $left"
}

remove() {
  exact
  for D_ID in $D_ID; do
    dir="$base/$D_ID"
    # What tells a late request that it comes too late has to outlive it.
    [ -d "$dir" ] && ! [ -e "$dir/never" ] || { echo "g $D_ID"; continue; }
    true 2>/dev/null > "$dir/cancelled"
    left=$(slay "$dir" "$D_ID" 0)
    if [ -n "$left" ]; then echo "k $D_ID $left"; continue; fi
    s= b= t=
    read -r s b t _ 2>/dev/null < "$dir/super"
    n=0
    while same "$s" "$b" "$t" && [ "$n" -lt 50 ]; do sleep 0.05 2>/dev/null || sleep 1; n=$((n + 1)); done
    same "$s" "$b" "$t" && kill -KILL "$s" 2>/dev/null
    chmod -R u+rwX "$dir/work" 2>/dev/null
    rm -rf "$dir" && echo "g $D_ID"
  done
}

# Workspaces, by their names: what a machine of ours is on a node.
release() {
  exact
  for d in $D_BAR; do dir="$base/$d" && bury; done
  for D_ID in $D_ID; do released; done
  find "$base" -maxdepth 2 -name never -mtime +0 2>/dev/null | while read -r d; do rm -rf "\${d%/never}"; done
  find "$base" -maxdepth 1 -name '.spare.*' -mtime +0 2>/dev/null | while read -r d; do rm -rf "$d"; done
}

released() {
  for d in "$base/$D_ID".*/ "$base/$D_ID"/; do
    [ -d "$d" ] || continue
    d=\${d%/}
    left=$(D_ID=\${d##*/} && remove)
    case $left in k*) echo "$left"; return ;; esac
  done
  [ -d "$work/$D_ID" ] && chmod -R u+rwX "$work/$D_ID" 2>/dev/null
  rm -rf "$work/$D_ID" "$work/$D_ID.base" "$work/$D_ID.stamp" && echo "g $D_ID"
}

claims() {
  for dir in "$work"/*/; do
    dir=\${dir%/}
    case $dir in *.base) continue ;; esac
    [ -d "$dir" ] && echo "w \${dir##*/} $(modified "$dir")"
  done
}

list() {
  for dir in "$base"/*/; do
    dir=\${dir%/}
    [ -d "$dir" ] && ! [ -e "$dir/never" ] || continue
    code= s= b= t= state=running from=0 to=0
    read -r code 2>/dev/null < "$dir/exit"
    read -r s b t _ 2>/dev/null < "$dir/super"
    clock
    if [ -n "$code" ]; then state=ended; elif ! same "$s" "$b" "$t"; then state=lost; fi
    echo "j \${dir##*/} $state \${from:-0}"
  done
}
`

/** Without comments and indentation: it travels with every request. */
export const PROGRAM = SOURCE.replace(/^\s*(?:#.*)?\n/gm, '').replace(/^ +/gm, '')
