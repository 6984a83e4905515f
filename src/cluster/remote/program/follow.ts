/** Sends what a command prints, from where the caller is, to its end. */
export const FOLLOW = `
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

# When the command began and ended, for a caller who did not see it.
clock() {
  from=$(modified "$dir/memo") to=$(modified "$dir/exit")
}

modified() {
  date -r "$1" +%s 2>/dev/null || stat -f %m "$1" 2>/dev/null || echo 0
}
`
