# idle COMMAND...: the first program of a container. Runs the command, the shell that takes the first request of the runner
# over stdin, then waits until the engine ends it. Later requests come over execs.
"$@"
trap 'exit 0' TERM
while :; do
  sleep 3600 &
  wait $!
done
