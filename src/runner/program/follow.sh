# Sends the output of a run from the offset that the daemon has, until the run has ended.

follow() {
  offset=0 out=0 err=0
  replay
  polls=0 quiet=0 late=0
  while :; do
    fresh=0 code='' complete=''
    read -r code 2>/dev/null < "$dir/exit"
    if [ -n "$code" ]; then
      # A process that the command left running may keep its streams open forever.
      late=$((late + 1))
      if [ -e "$dir/out_end" ] && [ -e "$dir/err_end" ] || [ "$late" -gt 15 ]; then complete=1; fi
    fi
    send_new out
    send_new err
    if [ -n "$complete" ]; then
      send_losses
      ended
      return
    fi
    to=''
    read -r to _ 2>/dev/null < "$dir/follower"
    [ -d "$dir" ] || { lost 'it was removed from the machine'; return; }
    [ -z "$to" ] || [ "$to" = $$ ] || { echo "superseded run=$run"; return; }
    polls=$((polls + 1))
    if [ $((polls % 16)) = 0 ]; then
      is_supervised || return
      # The connection is gone.
      kill -0 "$PPID" 2>/dev/null || exit
      echo "heartbeat run=$run"
    fi
    if [ "$fresh" = 1 ]; then quiet=0; else quiet=$((quiet + 1)); fi
    # The end of a command wakes us: a look is for its output, and each costs a process.
    if [ "$quiet" -lt 40 ]; then pause=0.1; else pause=0.25; fi
    woken=''
    sleep "$pause" 2>/dev/null &
    nap=$!
    # Cut short by a signal, or a sleep that knows no fractions.
    wait "$nap" || { kill "$nap" 2>/dev/null; [ -n "$woken" ] || sleep 1; }
  done
}

ended() {
  how=exit from=0 to=0
  # A client that has seen the start needs no times.
  [ -n "$seen_start" ] || from=$(modified "$dir/context") to=$(modified "$dir/exit")
  [ -e "$dir/timedout" ] && how=timeout
  [ -e "$claim.stopped" ] && how=stop
  echo "exit run=$run code=$code how=$how startedAt=$from endedAt=$to"
}

is_supervised() {
  if ! [ -s "$dir/supervisor" ]; then
    [ "$polls" -lt 64 ] && return 0
    lost 'the machine stopped while the command was being started (was its power cut?)'
    return 1
  fi
  signed supervisor && return 0
  # It may have ended in between.
  read -r code 2>/dev/null < "$dir/exit" && [ -n "$code" ] && return 0
  lost 'everything that ran on the machine was ended (a reboot, or somebody killed it)'
  return 1
}

# find_segment STREAM OFFSET: sets segment to the last one that begins at or before the offset, next to the first one
# behind it.
find_segment() {
  segment='' next=''
  for f in "$dir/$1".*; do
    start=${f##*.}
    [ "$start" = '*' ] && break
    if [ "$start" -gt "$2" ]; then
      if [ -z "$next" ] || [ "$start" -lt "$next" ]; then next=$start; fi
    elif [ -z "$segment" ] || [ "$start" -gt "$segment" ]; then segment=$start; fi
  done
}

# send STREAM OFFSET MOST: sends what one segment has from this offset of the stream on. Sets sent. The segment is opened
# before its length is announced: it may be deleted meanwhile.
send() {
  sent=0
  [ -n "$segment" ] || return 0
  {
    whole=''
    [ -n "$next" ] || read -r whole < "$dir/$1_end"
    if [ -n "$whole" ]; then sent=$((whole - $2)); else sent=$((segment + $(wc -c <&5) - $2)); fi
    [ "$3" = '' ] || [ "$sent" -le "$3" ] || sent=$3
    if [ "$sent" -gt 0 ]; then
      case $1 in out) name=stdout ;; *) name=stderr ;; esac
      [ "$3" = '' ] && echo "$1 $sent" >> "$index"
      echo "output run=$run stream=$name offset=$offset bytes=$sent"
      if [ "$2" = "$segment" ]; then head -c "$sent" <&6; else tail -c +$(($2 - segment + 1)) <&6 | head -c "$sent"; fi
      offset=$((offset + sent))
    else sent=0; fi
  } 2>/dev/null 5< "$dir/$1.$segment" 6< "$dir/$1.$segment"
}

# Sends what a stream has printed since, and notes the order in the index.
send_new() {
  [ -s "$dir/$1.0" ] || return 0
  while :; do
    if [ "$1" = out ]; then position=$out; else position=$err; fi
    find_segment "$1" "$position"
    send "$1" "$position" ''
    position=$((position + sent))
    # With a next segment this one is complete.
    if [ "$sent" = 0 ] && [ -n "$next" ] && [ "$next" -gt "$position" ]; then
      echo "gap $1 $((next - position))" >> "$index"
      skip $((next - position))
      position=$next
    elif [ "$sent" = 0 ]; then return; fi
    fresh=1
    if [ "$1" = out ]; then out=$position; else err=$position; fi
  done
}

# skip COUNT: these bytes were printed and not kept.
skip() {
  echo "dropped run=$run offset=$offset count=$1"
  offset=$((offset + $1))
}

# Goes through the index and sends, in its order, what the daemon does not have. Neighbours of one stream go together:
# each piece that is sent costs two processes.
replay() {
  of='' sum=0
  while read -r kind count more; do
    # A gap belongs to a stream, a loss to none.
    [ "$kind" = gap ] && { resend; of=''; pass "$more" "$count"; continue; }
    if [ "$kind" = "$of" ]; then sum=$((sum + count)); continue; fi
    resend
    of=$kind sum=$count
  done < "$index"
  resend
}

pass() {
  case $2 in out) out=$((out + $1)) ;; err) err=$((err + $1)) ;; esac
  hidden=$((from - offset))
  [ "$hidden" -gt 0 ] || hidden=0
  [ "$hidden" -lt "$1" ] || hidden=$1
  offset=$((offset + hidden))
  [ "$hidden" = "$1" ] || skip $(($1 - hidden))
}

resend() {
  [ -n "$of" ] && [ "$sum" -gt 0 ] || return 0
  case $of in
    lost) pass "$sum" '' ;;
    *)
      hidden=$((from - offset))
      [ "$hidden" -gt 0 ] || hidden=0
      [ "$hidden" -lt "$sum" ] || hidden=$sum
      if [ "$of" = out ]; then position=$out out=$((out + sum)); else position=$err err=$((err + sum)); fi
      offset=$((offset + hidden)) position=$((position + hidden)) sum=$((sum - hidden))
      while [ "$sum" -gt 0 ]; do
        find_segment "$of" "$position"
        send "$of" "$position" "$sum"
        if [ "$sent" = 0 ]; then
          sent=$sum
          [ -n "$next" ] && [ $((next - position)) -lt "$sum" ] && sent=$((next - position))
          skip "$sent"
        fi
        position=$((position + sent)) sum=$((sum - sent))
      done
      ;;
  esac
  of='' sum=0
}

# Bytes that the disk did not take are reported when everything else is.
send_losses() {
  for stream in out err; do
    missed=''
    read -r missed 2>/dev/null < "$dir/${stream}_lost"
    [ -n "$missed" ] && rm -f "$dir/${stream}_lost" && echo "lost $missed" >> "$index" && skip "$missed"
  done
}
