# The agent: the first process of a VM. It runs programs for the daemon, which it talks to over a virtio-serial port.
# A frame is its kind, a program, a number (1, 4 and 4 bytes, big-endian) and, where the kind has data, so many bytes.
# From the daemon: S starts a connection, with a nonce that is sent back. n runs a program: its arguments and its
# environment; N too, and hangs it up when the daemon goes. d: data for stdin. e: end of stdin. k: nobody reads any more.
# c: the time (seconds and microseconds) and a seed, for a VM that comes from a snapshot; sent back when they count.
# NUL bytes between frames are skipped, so that the daemon can finish a frame that an earlier connection has left
# incomplete.
# From here: d: stdout. s: stderr. x: the exit status.
# Both ways: a: so many bytes were taken, send more.
use strict;
use warnings;
use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use Fcntl;
use POSIX ();

my ($WINDOW, $CHUNK, $USER) = (262144, 32768, 1000);
my %HAS_DATA = map { $_ => 1 } qw(S n N d c);
my $CGROUP = '/sys/fs/cgroup/job';
$0 = 'deputy-agent';
$SIG{PIPE} = 'IGNORE';
# Interrupts select when a program has ended.
$SIG{CHLD} = sub { };
$SIG{TERM} = $SIG{INT} = $SIG{HUP} = 'IGNORE';

sub put_line {
  my ($path, $line) = @_;
  open my $file, '>', $path or return;
  syswrite $file, "$line\n";
  close $file;
}

# The limits of everything that belongs to the job.
sub limit {
  open my $file, '<', '/proc/cmdline' or return;
  my $line = <$file>;
  close $file;
  mkdir $CGROUP;
  put_line('/sys/fs/cgroup/cgroup.subtree_control', '+memory +pids');
  put_line("$CGROUP/memory.max", $1) if $line =~ /\bdeputy\.memory=(\d+)/;
  put_line("$CGROUP/pids.max", $1) if $line =~ /\bdeputy\.processes=(\d+)/;
}

sub nonblocking {
  my ($handle) = @_;
  fcntl $handle, F_SETFL, fcntl($handle, F_GETFL, 0) | O_NONBLOCK;
}

limit();
# Its number depends on how many devices there are.
my ($port, $is_open);
for (1 .. 600) {
  my ($path) = glob '/dev/vport*p1';
  last if $path && ($is_open = sysopen $port, $path, O_RDWR | O_NONBLOCK);
  select undef, undef, undef, 0.05;
}
die "no port: $!\n" unless $is_open;

my (%programs, %pids);
my ($input, $output, $is_connected) = ('', '', 0);

sub put { $output .= pack('aNN', @_[0 .. 2]) . ($_[3] // '') if $is_connected }

sub again { $! == EAGAIN || $! == EINTR || $! == EWOULDBLOCK }

# run ID COUNT\0ARGUMENT\0...NAME=VALUE\0...
sub run {
  my ($id, $data, $is_session) = @_;
  my ($count, @words) = split /\0/, $data, -1;
  pop @words;
  my @argv = splice @words, 0, $count;
  my @ends;
  for (0 .. 2) {
    pipe my $reader, my $writer or return put('x', $id, 126);
    push @ends, [$reader, $writer];
  }
  my $pid = fork;
  return put('x', $id, 126) unless defined $pid;
  if ($pid == 0) { become(\@argv, \@words, $ends[0][0], $ends[1][1], $ends[2][1]) }
  my $one = {pid => $pid, in => $ends[0][1], d => $ends[1][0], s => $ends[2][0], held => '', credit => $WINDOW,
    session => $is_session};
  nonblocking($one->{$_}) for qw(in d s);
  $programs{$id} = $one;
  $pids{$pid} = $one;
}

sub become {
  my ($argv, $env, $in, $out, $err) = @_;
  $SIG{$_} = 'DEFAULT' for qw(PIPE CHLD TERM INT HUP);
  POSIX::setsid();
  put_line("$CGROUP/cgroup.procs", $$);
  POSIX::dup2(fileno $in, 0);
  POSIX::dup2(fileno $out, 1);
  POSIX::dup2(fileno $err, 2);
  # Descriptors above 2 are closed by exec.
  $) = "$USER $USER";
  POSIX::setgid($USER);
  POSIX::setuid($USER);
  %ENV = map { split /=/, $_, 2 } @$env;
  chdir($ENV{PWD} // '/') or chdir '/';
  no warnings 'exec';
  # By the PATH of the program.
  exec {$argv->[0]} @$argv;
  my $why = "$!";
  syswrite STDERR, "$argv->[0]: $why\n";
  POSIX::_exit($why =~ /no such file/i ? 127 : 126);
}

# Nobody reads a program any more: it gets the end of its input, and SIGPIPE when it writes.
sub hang_up {
  my ($id) = @_;
  my $one = delete $programs{$id} or return;
  kill 'HUP', -$one->{pid} if $one->{session} && !defined $one->{status};
  close $_ for grep { defined } @$one{qw(in d s)};
}

sub disconnect {
  hang_up($_) for keys %programs;
  ($output, $is_connected) = ('', 0);
}

sub take {
  my ($kind, $id, $number, $data) = @_;
  if ($kind eq 'S') {
    disconnect();
    $is_connected = 1;
    return put('S', 0, $number, $data);
  }
  return renew($id, $data) if $kind eq 'c';
  return run($id, $data, $kind eq 'N') if $kind eq 'n' || $kind eq 'N';
  my $one = $programs{$id} or return;
  if ($kind eq 'd') { $one->{held} .= $data }
  elsif ($kind eq 'e') { $one->{ending} = 1 }
  elsif ($kind eq 'a') { $one->{credit} += $number }
  elsif ($kind eq 'k') { hang_up($id) }
}

# From the headers of Linux on x86-64.
my ($SETTIMEOFDAY, $ADD_ENTROPY, $RESEED) = (164, 0x40085203, 0x5207);

# All VMs of a snapshot have its time and its random numbers until they are told others.
sub renew {
  my ($id, $data) = @_;
  my ($seconds, $microseconds) = unpack 'NN', $data;
  my $seed = substr $data, 8;
  my $time = pack 'qq', $seconds, $microseconds;
  syscall $SETTIMEOFDAY, $time, 0;
  open my $random, '+<', '/dev/urandom' or return;
  my $entropy = pack 'iia*', 8 * length $seed, length $seed, $seed;
  # Without the reseed, the kernel would use the seed within a minute.
  ioctl($random, $ADD_ENTROPY, $entropy) && ioctl($random, $RESEED, 0) or return;
  close $random;
  put('c', $id, 0);
}

sub read_port {
  my $got = sysread $port, $input, 65536, length $input;
  return if !defined $got && again();
  if (!$got) {
    # The daemon is away. The port stays readable until there is another one.
    disconnect();
    select undef, undef, undef, 0.05;
    return;
  }
  for (;;) {
    $input =~ s/^\0+//;
    last if length $input < 9;
    my ($kind, $id, $number) = unpack 'aNN', $input;
    my $length = $HAS_DATA{$kind} ? $number : 0;
    last if length $input < 9 + $length;
    my $data = substr $input, 9, $length;
    substr($input, 0, 9 + $length) = '';
    take($kind, $id, $number, $data);
  }
}

sub write_port {
  my $done = syswrite $port, $output, $CHUNK;
  substr($output, 0, $done) = '' if $done;
}

sub write_stdin {
  my ($id, $one) = @_;
  if (length $one->{held}) {
    my $done = syswrite $one->{in}, $one->{held};
    return if !defined $done && again();
    # A program that does not want more: what was sent is lost.
    $done = length $one->{held} unless defined $done;
    substr($one->{held}, 0, $done) = '';
    put('a', $id, $done);
  }
  if ($one->{ending} && !length $one->{held}) {
    close $one->{in};
    delete $one->{in};
  }
}

# Returns whether there may be more.
sub read_stream {
  my ($id, $one, $kind) = @_;
  my $size = $one->{credit} < $CHUNK ? $one->{credit} : $CHUNK;
  my $data;
  my $got = sysread $one->{$kind}, $data, $size;
  return 0 if !defined $got && again();
  if ($got) {
    $one->{credit} -= $got;
    put($kind, $id, $got, $data);
    return 1;
  }
  close $one->{$kind};
  delete $one->{$kind};
  return 0;
}

sub reap {
  while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
    my $one = delete $pids{$pid} or next;
    $one->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
  }
}

# Its streams may be held open by processes that it left: what they have not written yet does not count.
sub finish {
  my ($id, $one) = @_;
  for my $kind (qw(d s)) {
    while ($one->{$kind} && $one->{credit} > 0) { last unless read_stream($id, $one, $kind) }
    return if $one->{$kind} && $one->{credit} <= 0;
  }
  delete $programs{$id};
  close $_ for grep { defined } @$one{qw(in d s)};
  put('x', $id, $one->{status});
}

for (;;) {
  my ($readable, $writable) = ('', '');
  vec($readable, fileno $port, 1) = 1;
  vec($writable, fileno $port, 1) = 1 if length $output;
  # A daemon that reads slowly stops the programs, not the agent.
  my $is_full = length $output > 4 * $WINDOW;
  for my $one (values %programs) {
    for my $kind (qw(d s)) {
      vec($readable, fileno $one->{$kind}, 1) = 1 if $one->{$kind} && $one->{credit} > 0 && !$is_full;
    }
    vec($writable, fileno $one->{in}, 1) = 1 if $one->{in} && (length $one->{held} || $one->{ending});
  }
  # With a timeout, because the signal of a program that ends just before select does not interrupt it.
  my $found = select $readable, $writable, undef, keys %pids ? 0.2 : 10;
  reap();
  if ($found > 0) {
    for my $id (keys %programs) {
      my $one = $programs{$id};
      write_stdin($id, $one) if $one->{in} && vec $writable, fileno $one->{in}, 1;
      for my $kind (qw(d s)) {
        read_stream($id, $one, $kind) if $one->{$kind} && vec $readable, fileno $one->{$kind}, 1;
      }
    }
    write_port() if length $output && vec $writable, fileno $port, 1;
    read_port() if vec $readable, fileno $port, 1;
  }
  for my $id (keys %programs) {
    finish($id, $programs{$id}) if defined $programs{$id}{status};
  }
}
