# connections PORT PID-FILE: listens on loopback and carries its connections over stdin and stdout to the daemon, where
# the proxy is. A frame is its kind, the connection, a number (1, 4 and 4 bytes, big-endian) and, for d, so many bytes.
# r: ready. o: opened. d: data. a: so many bytes were delivered, send more. e: no more data. x: closed.
use strict;
use warnings;
use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use IO::Handle;
use Socket;

my ($port, $pid_file) = @ARGV;
my ($WINDOW, $MOST, $CHUNK) = (262144, 64, 65536);
$SIG{PIPE} = 'IGNORE';
$0 = 'deputy-connections';

# The one that an earlier daemon started may not have noticed that its stream was cut.
if (open my $file, '<', $pid_file) {
  my ($old) = (<$file> // '') =~ /^(\d+)$/;
  close $file;
  if ($old && open my $command, '<', "/proc/$old/cmdline") {
    kill 'KILL', $old if (<$command> // '') =~ /^\Q$0\E/;
  }
}

socket my $listener, PF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
setsockopt $listener, SOL_SOCKET, SO_REUSEADDR, 1;
for (my $tries = 100; !bind $listener, pack_sockaddr_in($port, INADDR_LOOPBACK); $tries--) {
  die "cannot listen on port $port: $!\n" if $tries == 0;
  select undef, undef, undef, 0.1;
}
listen $listener, 128 or die "listen: $!\n";
$listener->blocking(0);
if (open my $file, '>', $pid_file) { print $file "$$\n"; close $file }

my (%connections, $next);
my $input = '';

# Blocking: the daemon always reads.
sub put {
  my ($kind, $id, $number, $data) = @_;
  my $frame = pack('aNN', $kind, $id, $number) . ($data // '');
  while (length $frame) {
    my $done = syswrite STDOUT, $frame;
    if (defined $done) { substr($frame, 0, $done) = '' }
    elsif ($! != EINTR) { exit 0 }
  }
}

sub drop {
  my ($id, $notify) = @_;
  my $one = delete $connections{$id} or return;
  close $one->{socket};
  put('x', $id, 0) if $notify;
}

sub again { $! == EAGAIN || $! == EINTR || $! == EWOULDBLOCK }

sub take {
  my ($kind, $id, $number, $data) = @_;
  my $one = $connections{$id} or return;
  if ($kind eq 'd') { $one->{out} .= $data }
  elsif ($kind eq 'a') { $one->{credit} += $number }
  elsif ($kind eq 'e') { $one->{ending} = 1 }
  elsif ($kind eq 'x') { $one->{closing} = 1 }
}

sub read_daemon {
  my $got = sysread STDIN, $input, $CHUNK, length $input;
  return if !defined $got && again();
  exit 0 unless $got;
  while (length $input >= 9) {
    my ($kind, $id, $number) = unpack 'aNN', $input;
    my $length = $kind eq 'd' ? $number : 0;
    last if length $input < 9 + $length;
    take($kind, $id, $number, substr $input, 9, $length);
    substr($input, 0, 9 + $length) = '';
  }
}

sub read_client {
  my ($id, $one) = @_;
  my $size = $one->{credit} < $CHUNK ? $one->{credit} : $CHUNK;
  my $data;
  my $got = sysread $one->{socket}, $data, $size;
  if (!defined $got) { drop($id, 1) unless again() }
  elsif ($got) { $one->{credit} -= $got; put('d', $id, $got, $data) }
  else { $one->{eof} = 1; put('e', $id, 0); drop($id, 1) if $one->{ended} }
}

sub write_client {
  my ($id, $one) = @_;
  if (length $one->{out}) {
    my $done = syswrite $one->{socket}, $one->{out};
    if (!defined $done) { drop($id, 1) unless again(); return }
    substr($one->{out}, 0, $done) = '';
    put('a', $id, $done);
  }
  return if length $one->{out};
  if ($one->{closing}) { drop($id, 0) }
  elsif ($one->{ending} && !$one->{ended}) {
    shutdown $one->{socket}, 1;
    $one->{ended} = 1;
    drop($id, 1) if $one->{eof};
  }
}

put('r', 0, 0);
for (;;) {
  my ($readable, $writable) = ('', '');
  vec($readable, fileno STDIN, 1) = 1;
  vec($readable, fileno $listener, 1) = 1 if keys %connections < $MOST;
  for my $one (values %connections) {
    vec($readable, fileno $one->{socket}, 1) = 1 if $one->{credit} > 0 && !$one->{eof};
    vec($writable, fileno $one->{socket}, 1) = 1
      if length $one->{out} || $one->{closing} || $one->{ending} && !$one->{ended};
  }
  next if select($readable, $writable, undef, undef) < 0;
  for my $id (keys %connections) {
    my $one = $connections{$id};
    my $number = fileno $one->{socket};
    write_client($id, $one) if vec $writable, $number, 1;
    read_client($id, $one) if $connections{$id} && vec $readable, $number, 1;
  }
  if (vec($readable, fileno $listener, 1) && accept my $socket, $listener) {
    $socket->blocking(0);
    $connections{++$next} = {socket => $socket, out => '', credit => $WINDOW};
    put('o', $next, 0);
  }
  read_daemon() if vec $readable, fileno STDIN, 1;
}
