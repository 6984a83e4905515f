# session ID PIPE COMMAND…: runs a command with two named pipes as its stdin and stdout, and reports on fd 3.
id=$1 pipe=$2
shift 2
mkfifo -m 600 "$pipe.in" "$pipe.out" || exit
echo "session $id made $$" >&3
# Each waits until the shim has opened the other end.
exec <"$pipe.in" >"$pipe.out" 2>&1
rm -f "$pipe.in" "$pipe.out"
echo "session $id open $$" >&3
"$@"
echo "session $id ended $?" >&3
