# connect.sh PORT: connects stdin and stdout with a port of this machine. Exits with 69 when nothing listens there.
exec 2>/dev/null
if command -v bash >/dev/null; then
  # A server that closes the connection ends everything; a client that does is told by the other end.
  exec bash -c '
    for host in localhost 127.0.0.1; do
      if exec 3<>"/dev/tcp/$host/$1"; then
        cat <&0 >&3 &
        cat <&3
        kill "$!"
        exit 0
      fi
    done
    exit 69' bash "$1"
fi
command -v nc >/dev/null || exit 127
nc 127.0.0.1 "$1" || exit 69
