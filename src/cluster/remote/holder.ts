/**
 * Starts a command and stays with it where a node has Perl, which nearly all do: two processes instead of a dozen,
 * both streams in their true order, and nothing that polls. It leaves the same files as the shell program, which does
 * everything else: attach, cancel, remove. No modules: they take longer to load than the work takes.
 *
 * The supervisor notes in `index` what it wrote, so `ordered` tells a follower to believe the index alone.
 */
const SOURCE = `
use strict;
my %d;
for (grep { /^D_/ } keys %ENV) { $d{$_} = $ENV{$_}; delete $ENV{$_} }
my $standby = delete $d{D_STANDBY};
my $home = "$ENV{HOME}/.cache/deputy/$d{D_OWNER}";
my ($base, $work) = ("$home/jobs", "$home/work");
my $dir;
my $nonblock = $^O eq 'linux' ? 2048 : 4;
umask 077;

# Perl buffers nothing here: what is written is written, or tells why not.
sub out { my $t = join '', @_; while (length $t) { my $n = syswrite STDOUT, $t; exit 0 unless defined $n; substr($t, 0, $n) = '' } }
sub put { my ($name, $text) = @_; open(my $h, '>', "$dir/$name") or return 0; my $n = syswrite $h, $text; return defined $n && $n == length $text }
sub get { my ($name) = @_; open(my $h, '<', "$dir/$name") or return ''; my $t = ''; sysread $h, $t, 4096; return $t }
sub mkdirs { my $p = ''; for (split m{/}, $_[0]) { next if $_ eq ''; $p .= "/$_"; mkdir $p } }
sub shell { my ($verb) = @_; %ENV = (%ENV, %d, D_PLAIN => 1); exec 'sh', '-c', "$d{D_PROGRAM}\\n$verb\\n"; exit 127 }
sub born {
  my ($pid) = @_;
  if (open(my $h, '<', "/proc/$pid/stat")) { local $/; my $line = <$h>; $line =~ s/^.*\\) //s; return (split ' ', $line)[19] }
  my $t = \`ps -o lstart= -p $pid\`; $t =~ s/\\s//g; return $t;
}
# Seconds that only go forward, where the system counts them; and whether they do.
sub seconds { if (open(my $h, '<', '/proc/uptime')) { my $t; sysread $h, $t, 64; return ($t + 0, 1) if $t =~ /^[0-9]/ } return (time, 0) }

# The number of prctl is another on each kind of processor: this program's own header tells which.
my $prctl;
if ($^O eq 'linux' && open(my $h, '<', '/proc/self/exe')) {
  my $head = '';
  if (sysread($h, $head, 20) == 20) {
    my ($class, $order) = unpack 'x4CC', $head;
    my %known = ('2 62' => 157, '2 183' => 167, '2 243' => 167, '2 21' => 171, '2 22' => 172, '1 3' => 172, '1 40' => 172);
    $prctl = $known{"$class " . unpack($order == 2 ? 'x18n' : 'x18v', $head)};
  }
}
my $boot = '-';
if (open(my $h, '<', '/proc/sys/kernel/random/boot_id')) { sysread $h, $boot, 64; $boot =~ s/\\s//g }

if ($standby) {
  out("deputy-standby perl\\n");
  for (;;) {
    my $line = <STDIN>;
    # Whatever comes before the last line is nothing without it.
    exit 0 unless defined $line && $line =~ /\\n\\z/;
    last if $line eq "go\\n";
    $d{$1} = pack 'H*', $2 if $line =~ /^(D_[A-Z]+) ([0-9a-f]*)\\n/;
  }
  my ($mark, $verb) = delete @d{qw(D_MARK D_VERB)};
  out("$mark\\n");
  shell($verb) unless $verb eq 'run';
}
$dir = "$base/$d{D_ID}";
$d{D_CWD} = "$ENV{HOME}/$d{D_CWD}" if $d{D_CWD} =~ m{^[^/]};
my $own = $d{D_WORK} ne '' || $d{D_CWD} eq '';
my $cwd = $d{D_WORK} ne '' ? "$work/$d{D_WORK}" : $d{D_CWD} ne '' ? $d{D_CWD} : "$dir/work";
my $mine = mkdir $dir;
if (!$mine && $! + 0 == 2) { mkdirs($base); mkdirs($work); $mine = mkdir $dir }
unless ($mine) {
  unless (-d $dir) { out("f the node could not make $dir (is its disk full or read-only?)\\n"); exit 0 }
  # Whoever made it starts the command, and may still be writing it down: everybody else only follows.
  shell('run');
}
mkdir $cwd if $own && !-d $cwd;
unless (put('exit', "       \\n") && put('cmd', "$d{D_CMD}\\n") && put('memo', $d{D_MEMO}) && put('ordered', '') && put('follower', "$$\\n") && put('index', '')) {
  unlink map { "$dir/$_" } qw(exit cmd memo index ordered follower);
  rmdir $cwd if $own; rmdir $dir;
  out("f the node could not write to $base (is its disk full?)\\n"); exit 0;
}
pipe(my $tell_r, my $tell_w);
fcntl($tell_w, 4, $nonblock);
my $super = fork;
unless (defined $super) { out("f the node could not start another process: $!\\n"); exit 0 }
if ($super == 0) { close $tell_r; supervise(); exit 0 }
close $tell_w;
out("s 1\\n");
follow();

sub supervise {
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  $SIG{HUP} = $SIG{PIPE} = 'IGNORE';
  # What leaves the tree of the command, its session and its environment is adopted by us, and found below us.
  my $tree = defined $prctl && syscall($prctl, 36, 1, 0, 0, 0) == 0 ? ' tree' : '';
  put('super', "$$ " . born($$) . " $boot$tree\\n");
  pipe(my $out_r, my $out_w); pipe(my $err_r, my $err_w);
  my $child = fork;
  if (!defined $child) { put('exit', sprintf("%-7s\\n", 126)); return }
  if ($child == 0) {
    open STDOUT, '>&', $out_w; open STDERR, '>&', $err_w;
    setpgrp(0, 0);
    $SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT PIPE TERM);
    unless (chdir $cwd) { syswrite STDERR, "cd: $cwd: $!\\n"; exit 126 }
    umask 022;
    for (split /\\0/, pack 'H*', $d{D_ENVX}) { my ($k, $v) = split /=/, $_, 2; $ENV{$k} = $v }
    $ENV{DEPUTY_JOB} = $d{D_ID};
    my @argv = split /\\0/, (pack 'H*', $d{D_ARGX}), -1;
    if (@argv) { $ENV{PWD} = $ENV{DEPUTY_WORKSPACE} = $cwd; exec { $argv[0] } @argv; syswrite STDERR, "$argv[0]: $!\\n"; exit($! + 0 == 2 ? 127 : 126) }
    exec 'bash', "$dir/cmd"; exec 'sh', "$dir/cmd"; exit 127;
  }
  close $out_w; close $err_w;
  put('cpid', "$child " . born($child) . " $boot\\n");
  $SIG{CHLD} = sub { };
  # Whoever cancels writes first and looks for the number then: one of both sees the other.
  if (!-d $dir) { kill 'KILL', $child, -$child } elsif (-e "$dir/cancelled") { slay() }
  open(my $out_f, '>>', "$dir/out"); open(my $err_f, '>>', "$dir/err"); open(my $index, '>>', "$dir/index");
  my %open = (o => [$out_r, $out_f], e => [$err_r, $err_f]);
  my ($code, $told, $grace, $mute) = (undef, 0, 0, 0);
  my ($last, $exact) = seconds();
  my $left = $d{D_TIMEOUT} > 0 ? $d{D_TIMEOUT} + ($exact ? 0 : 1) : 0;
  for (;;) {
    my $bits = '';
    vec($bits, fileno($_->[0]), 1) = 1 for values %open;
    my $wait = defined $code ? ($told ? 5 : 0.02) : %open ? 1 : $mute++ < 100 ? 0.002 : 0.1;
    $wait = $left if $left > 0 && $left < $wait;
    my $n = select($bits, undef, undef, $wait);
    $bits = '' if $n < 0;
    my $fresh = 0;
    for my $kind (sort { $b cmp $a } keys %open) {
      my ($from, $to) = @{ $open{$kind} };
      next unless $n > 0 && vec($bits, fileno($from), 1);
      my $got = sysread $from, my $data, 65536;
      if (!$got) { delete $open{$kind}; next }
      my $wrote = syswrite $to, $data;
      syswrite $index, "$kind $wrote\\n" if $wrote;
      $fresh = 1;
    }
    my $gone;
    while (($gone = waitpid(-1, 1)) > 0) { $code = $? & 127 ? 128 + ($? & 127) : $? >> 8 if $gone == $child }
    # What a command left running may keep the pipes open for ever.
    if (defined $code && !$told && (!%open || (!$fresh && $n == 0 && ++$grace > 3))) {
      put('out.end', ''); put('err.end', '');
      # In place, so that a full disk cannot take the one thing that must be kept.
      if (open(my $h, '+<', "$dir/exit")) { syswrite $h, sprintf("%-7s\\n", $code) }
      $told = 1; $left = 0;
      my ($who) = get('follower') =~ /(\\d+)/;
      kill 'USR1', $who if $who && $who != getppid;
      $fresh = 1;
    }
    syswrite $tell_w, 'x' if $fresh;
    # As long as something is left that only we can be asked for, we stay.
    return if $told && !%open && $gone < 0;
    if ($left > 0) {
      # A clock that is set is no time that has passed.
      my ($now) = seconds();
      my $passed = $now - $last;
      $left -= $passed < 0 ? 0 : $passed > 10 ? 10 : $passed;
      $last = $now;
      if ($left <= 0) { put('timedout', ''); slay() }
    }
  }
}

sub slay {
  my $slayer = fork;
  if (defined $slayer && $slayer == 0) { shell('slay "$base/$D_ID" "$D_ID" "$D_GRACE" > /dev/null') }
}

sub follow {
  open(my $index, '<', "$dir/index"); open(my $out_f, '<', '/dev/null'); open(my $err_f, '<', '/dev/null');
  my (%file, $rest) = ();
  $rest = '';
  my $drain = sub {
    while (sysread $index, my $more, 65536) { $rest .= $more }
    while ($rest =~ s/^([oe]) (\\d+)\\n//) {
      my ($kind, $left) = ($1, $2);
      if (!$file{$kind}) { open($file{$kind}, '<', "$dir/" . ($kind eq 'o' ? 'out' : 'err')) or return }
      out("$kind $left\\n");
      while ($left > 0) { my $n = sysread $file{$kind}, my $data, $left > 65536 ? 65536 : $left; last unless $n; out($data); $left -= $n }
    }
  };
  my $gone = 0;
  for (;;) {
    my ($code) = get('exit') =~ /^(\\d+)/;
    $drain->();
    if (defined $code) {
      out("x $code " . (-e "$dir/cancelled" ? 'cancel' : -e "$dir/timedout" ? 'timeout' : 'exit') . " 0 0\\n");
      return;
    }
    if (!-d $dir) { out("l it was removed from the node\\n"); return }
    my ($who) = get('follower') =~ /(\\d+)/;
    if ($who && $who != $$) { out("q\\n"); return }
    if ($gone) { out("l the node ended everything that ran on it (a reboot, or somebody killed it)\\n"); return }
    my $bits = '';
    vec($bits, fileno($tell_r), 1) = 1;
    if (select($bits, undef, undef, 4) > 0) { $gone = 1 unless sysread $tell_r, my $x, 65536 }
    else { out("h\\n") }
  }
}
`

/** Without comments and indentation: it travels with every request. */
export const HOLDER = SOURCE.replace(/^\s*(?:#.*)?\n/gm, '').replace(/^ +/gm, '')
