# Starts a run at most once; a caller that does not start it follows it.

start() {
  while [ $# -gt 0 ]; do
    case $1 in env=* | --) break ;; *) shift ;; esac
  done
  trap 'woken=1' USR1
  if ! claim; then
    if is_claimed; then follow_recorded; else never_started 1 "$unwritable"; fi
  elif ! record; then
    rm -rf "$dir" "$claim"
    never_started 1 "$unwritable"
  elif [ -e "$claim.barred" ]; then
    rm -rf "$dir"
    never_started 0 'it was given up before it arrived'
  else
    index=$dir/index
    sign follower
    launch "$@"
    echo "started run=$run fresh=1"
    seen_start=1
    follow
  fi
}

follow_known() {
  trap 'woken=1' USR1
  if bar; then
    never_started 0 'the machine does not know this run'
  elif is_claimed; then
    follow_recorded
  else lost "$unwritable"; fi
}

follow_recorded() {
  is_recorded || return 0
  theirs=''
  read -r theirs 2>/dev/null < "$dir/version"
  if [ "$theirs" != "$version" ]; then
    lost "it was started by another version of Deputy (runner ${theirs:-0}, this one is $version); its output stays on the machine"
    return
  fi
  sign follower
  own_index
  echo "started run=$run fresh=0"
  seen_start=''
  follow
}

# Sets index: a copy of the last one. A follower whose connection was cut notices late that there is another one; in a
# common index it would note the same output once more.
own_index() {
  tries=0
  while :; do
    number=0
    for f in "$dir"/index.*; do
      case ${f##*.} in *[!0-9]*) ;; *) [ "${f##*.}" -le "$number" ] || number=${f##*.} ;; esac
    done
    index=$dir/index
    [ "$number" = 0 ] || index=$index.$number
    if cp "$index" "$dir/copy.$$" && ln "$dir/copy.$$" "$dir/index.$((number + 1))"; then
      index=$dir/index.$((number + 1))
      break
    fi
    # Another follower was faster. On a full disk, the last index has to do.
    tries=$((tries + 1))
    if ! [ -e "$dir/index.$((number + 1))" ] || [ "$tries" -ge 100 ]; then break; fi
  done
  rm -f "$dir/copy.$$" "$dir/index.$((number - 1))"
} 2>/dev/null

unwritable='the machine could not write to ~/.cache/deputy (is its disk full or read-only?)'

# Creating a file that must not exist is atomic, and needs no other program.
claim() {
  is_claimed && return 1
  create "$claim" || { mkdir -p "$runs" "$work" "$claims" && create "$claim"; }
} 2>/dev/null

create() {
  set -C
  if true > "$1"; then set +C; else set +C && return 1; fi
}

is_claimed() { [ -e "$claim" ] || [ -d "$dir" ]; }

# Makes every directory with one mkdir: what costs time here is the start of a program. The index comes last: without it
# the record is not complete.
record() {
  choose_cgroup
  mkdir -p "$dir" "$work/$workspace" ${cgroup:+"$cgroup"}
  [ -d "$work/$workspace" ] && printf '%-7s\n' '' > "$dir/exit" && printf '%s' "$sealed" > "$dir/context" &&
    echo "$version" > "$dir/version" && printf '%-15s\n' '' > "$dir/out_lost" &&
    printf '%-15s\n' '' > "$dir/err_lost" && true > "$dir/index"
} 2>/dev/null

# A request for this run that is still on its way finds this mark, however late it arrives, and starts nothing.
bar() {
  claim || return 1
  true > "$claim.barred"
}

# Another request may be writing the record right now. After a power cut it may stay incomplete forever.
is_recorded() {
  tries=0
  until [ -e "$dir/index" ]; do
    [ -e "$claim.barred" ] && { never_started 0 'it was given up before it arrived'; return 1; }
    is_claimed || { lost 'it was removed from the machine'; return 1; }
    [ "$tries" -ge 150 ] && { lost 'only a part of its record is left on the machine (was its power cut?)'; return 1; }
    sleep 0.02 2>/dev/null || { sleep 1; tries=$((tries + 50)); }
    tries=$((tries + 1))
  done
}

# Prints the sealed context of a run, which a follower needs first. An unknown run is barred from starting later: no
# daemon would know its secrets then.
context() {
  sealed=''
  bar || { is_recorded > /dev/null && IFS= read -r sealed < "$dir/context"; }
  echo "context run=$run context=$sealed"
}
