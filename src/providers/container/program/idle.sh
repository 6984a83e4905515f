# The first program of a container: waits until the engine ends it. The commands of jobs come later, over the channel.
trap 'exit 0' TERM
while :; do
  sleep 3600 &
  wait $!
done
