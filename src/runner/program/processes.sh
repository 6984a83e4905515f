# Which processes belong to a run, which of them live, and how they are ended.

# Sets born: tells a process from a later one with the same pid.
birth() {
  born=''
  if [ -r /proc/self/stat ]; then
    read -r stat 2>/dev/null < "/proc/$1/stat" || return
    # shellcheck disable=SC2086 # Unquoted on purpose: splits into fields.
    set -- ${stat##*) }
    shift 19
    born=$1
  else born=$(ps -o lstart= -p "$1" 2>/dev/null | tr -d ' \n'); fi
}

# is_same PID BORN BOOT: it is alive and no later process.
is_same() {
  [ -n "$1" ] && [ -n "$2" ] && [ "${3:-$boot}" = "$boot" ] && kill -0 "$1" 2>/dev/null && birth "$1" && [ "$born" = "$2" ]
}

# Writes who this process is, also in a subshell, into a file of the record.
sign() {
  if [ -r /proc/self/stat ]; then
    read -r stat < /proc/self/stat
    me=${stat%% *} file=$1
    # shellcheck disable=SC2086 # Unquoted on purpose: splits into fields.
    set -- ${stat##*) }
    shift 19
    echo "$me $1 $boot" > "$dir/$file"
  else
    me=$(exec sh -c 'echo $PPID')
    birth "$me"
    echo "$me $born $boot" > "$dir/$1"
  fi
}

# signed FILE: the process that wrote it is alive.
signed() {
  pid='' at='' in=''
  read -r pid at in 2>/dev/null < "$dir/$1"
  is_same "$pid" "$at" "$in"
}

# Sets cgroup: one of its own keeps a command that leaves its session, its parents and its environment. Only root may
# make one.
choose_cgroup() {
  for cgroup in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ -w "$cgroup/cgroup.procs" ] && cgroup=$cgroup/deputy/$owner/$run && return
  done
  cgroup=''
}

enter_cgroup() {
  [ -n "$cgroup" ] && [ -d "$cgroup" ] && echo "$cgroup" > "$dir/cgroup" && echo 0 > "$cgroup/cgroup.procs"
} 2>/dev/null

# The command has ended and its cgroup is empty: no other process needs to be looked at.
is_over() {
  code='' first=''
  read -r code 2>/dev/null < "$dir/exit" && [ -n "$code" ] && recorded_cgroup || return 1
  for d in "$cgroup"/*/; do [ -d "$d" ] && return 1; done
  read -r first 2>/dev/null < "$cgroup/cgroup.procs"
  [ -z "$first" ]
}

recorded_cgroup() {
  cgroup=''
  read -r cgroup 2>/dev/null < "$dir/cgroup" && [ -d "$cgroup" ]
}

leave_cgroup() {
  recorded_cgroup || return 0
  for d in "$cgroup"/*/; do [ -d "$d" ] && find "$cgroup" -mindepth 1 -depth -type d -exec rmdir {} + && break; done
  rmdir "$cgroup" "${cgroup%/*}" "${cgroup%/*/*}"
} 2>/dev/null

# Prints every process of the run, then `|`, then the same without bubblewrap: TERM to it would kill what is inside
# before that was asked to end. They are: its cgroup; its session or group, while the first process is still the one
# that was started or a marked process is in it; whatever carries its mark in the environment; all descendants.
members() {
  sure='' caged=''
  signed command && sure=1
  root=$pid
  if recorded_cgroup; then caged=$(find "$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null | tr '\n' ' '); fi
  if [ -r /proc/self/stat ]; then
    # shellcheck disable=SC2086 # Unquoted on purpose: expands to options of grep.
    marked=$(grep -l $exact "DEPUTY_JOB=$run" /proc/[0-9]*/environ 2>/dev/null | tr -c 0-9 ' ')
  else
    # shellcheck disable=SC2009 # pgrep does not look at the environment.
    marked=$(ps -A -E -o pid= -o command= 2>/dev/null | grep -F "DEPUTY_JOB=$run" | grep -v grep | awk '{print $1}' | tr '\n' ' ')
  fi
  processes | awk -v root="$root" -v sure="$sure" -v known="$caged $marked" -v me="$$" '
    BEGIN { n = split(known, word, " "); for (i = 1; i <= n; i++) ours[word[i]] = 1 }
    # PID (NAME) STATE PARENT GROUP SESSION ...; the name may contain anything.
    /\) / {
      fields = $0
      sub(/^.*\) /, "", fields)
      split(fields, field, " ")
      if (field[1] ~ /^Z/) next
      pid[++count] = $1; parent[$1] = field[2]; group[$1] = field[3]; session[$1] = field[4]
      box[$1] = index($0, "(bwrap) ")
    }
    END {
      for (i = 1; i <= count; i++) {
        p = pid[i]
        if (ours[p] && root != "" && (group[p] == root || session[p] == root)) sure = 1
      }
      for (i = 1; i <= count; i++) {
        p = pid[i]
        if (sure && root != "" && (p == root || group[p] == root || session[p] == root)) ours[p] = 1
      }
      do {
        more = 0
        for (i = 1; i <= count; i++) if (!ours[pid[i]] && ours[parent[pid[i]]] && pid[i] != me) { ours[pid[i]] = 1; more = 1 }
      } while (more)
      for (i = 1; i <= count; i++) if (ours[pid[i]] && pid[i] != me && pid[i] > 1) {
        all = all pid[i] " "
        if (!box[pid[i]]) soft = soft pid[i] " "
      }
      printf "%s|%s", all, soft
    }'
}

# All processes, as /proc/PID/stat shows them.
processes() {
  if [ -r /proc/self/stat ]; then
    cat /proc/[0-9]*/stat 2>/dev/null
  else ps -A -o pid= -o stat= -o ppid= -o pgid= | awk '{print $1, "(?)", $2, $3, $4, $4}'; fi
}

# end_processes GRACE: TERM, the grace in tenths of a second, then KILL until nothing is left. Sets left: the survivors.
end_processes() {
  # Match the whole variable where grep can, so that no id is found in a longer one.
  if printf 'a\0b\0' | grep -qzxF b 2>/dev/null; then exact=-zxF; else exact=-F; fi
  found=$(members)
  left=${found%%|*} soft=${found#*|}
  # shellcheck disable=SC2086 # Unquoted on purpose: expands to zero or more pids.
  [ -n "$soft" ] && kill -TERM $soft 2>/dev/null
  tries=0
  while [ -n "$left" ] && [ "$tries" -lt $(($1 + 60)) ]; do
    # shellcheck disable=SC2086 # Unquoted on purpose: expands to zero or more pids.
    [ "$tries" -ge "$1" ] && kill -KILL $left 2>/dev/null
    sleep 0.1 2>/dev/null || sleep 1
    found=$(members)
    left=${found%%|*}
    tries=$((tries + 1))
  done
}
