# The runner: POSIX sh, nothing installed. It holds commands on a machine and answers requests of the runner protocol
# (../frames.ts). Each request is one call of `request` with the words of the frame.
#
# The request that creates the file claims/RUN starts the run; others follow it. claims/RUN.barred: it must never start.
# claims/RUN.stopped: it is to end. The directory jobs/RUN is its record:
#   version      of this layout                  exit         exit code, reserved before the start
#   context      sealed by the daemon            index        order of the output; its presence completes the record
#                                                index.N      the same, of the Nth follower
#   supervisor   pid, start time, boot id        command      pid, start time, boot id
#   out.N err.N  output from byte N of a stream  follower     pid, start time, boot id
#   out_end ...  length of the complete stream   out_lost ... bytes that the disk did not take
#   timedout     its own clock ended it          cgroup       the cgroup of the command
umask 077
LC_ALL=C
export LC_ALL
version=1 oldest=1 refused='' runs='' claims='' as_job=''
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
for d in /opt/homebrew/bin "$HOME/.local/bin" "$HOME/.cargo/bin"; do
  [ -d "$d" ] && case ":$PATH:" in *":$d:"*) ;; *) PATH="$PATH:$d" ;; esac
done
export PATH
boot=-
[ -r /proc/sys/kernel/random/boot_id ] && read -r boot < /proc/sys/kernel/random/boot_id

request() {
  [ -z "$refused" ] || return 0
  kind=$1
  shift
  settings "$@"
  case $kind in
    hello) greet ;;
    start) start "$@" ;;
    follow) follow_known ;;
    stop) stop ;;
    context) context ;;
    bar) bar || true ;;
    release) release ;;
    workspaces) list_workspaces ;;
    files) list_files ;;
    read) read_files "$@" ;;
    *) echo "failed reason='the runner does not know this request'" ;;
  esac
}

# Sets a variable for each setting of a request. A new setting that this runner does not know is ignored.
settings() {
  run='' workspace='' from=0
  while [ $# -gt 0 ]; do
    case $1 in
      version=*) theirs=${1#*=} ;;
      mark=*) mark=${1#*=} ;;
      owner=*) owner=${1#*=} ;;
      run=*) run=${1#*=} ;;
      workspace=*) workspace=${1#*=} ;;
      from=*) from=${1#*=} ;;
      timeoutSeconds=*) timeout=${1#*=} ;;
      graceTenths=*) grace=${1#*=} ;;
      keepHead=*) head=${1#*=} ;;
      keepTail=*) tail=${1#*=} ;;
      context=*) sealed=${1#*=} ;;
      env=* | --) break ;;
    esac
    shift
  done
  dir=$runs/$run claim=$claims/$run
}

greet() {
  home=$HOME/.cache/deputy/$owner
  runs=$home/jobs work=$home/work claims=$home/claims
  echo "hello version=$version oldest=$oldest boot=$boot mark=$mark"
  [ "$theirs" -ge "$oldest" ] && return
  refused=1
  echo "failed reason='this runner needs a daemon with version $oldest of the runner protocol or newer, not $theirs'"
}

finish() { echo end; }

# The daemon shows these reasons. They are constants without quotes, so they need no escaping.
lost() { echo "lost run=$run reason='$1'"; }
never_started() { echo "refused run=$run fault=$1 reason='$2'"; }

modified() { date -r "$1" +%s 2>/dev/null || stat -f %m "$1" 2>/dev/null || echo 0; }
