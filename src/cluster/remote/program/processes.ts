/** Which processes are those of a command, which of them live, and how they are ended. */
export const PROCESSES = `
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

myself() {
  if [ -r /proc/self/stat ]; then read -r me _ < /proc/self/stat; else me=$(exec sh -c 'echo $PPID'); fi
}

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
`
