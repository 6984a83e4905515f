/**
 * Starts a command and stays with it where a node has Perl, which nearly all do: two processes instead of a dozen,
 * both streams in their true order, and nothing that polls. It leaves the same files as the shell program, which does
 * everything else: attach, cancel, remove. No modules: they take longer to load than the work takes.
 *
 * Of each stream the head and the tail are kept: what comes after the head goes round in a ring, so that no output
 * fills the disk. `index` tells what was printed in which order, in runs of 30 characters: `o`, `e` or, for bytes that
 * were kept nowhere, `d`, and twice the length. The last run grows in place; the second number proves that the first
 * was read whole. What follows such a command later, after a cut, is this program as well.
 */
const SOURCE = `
use strict;
my %d;
for (grep { /^D_/ } keys %ENV) { $d{$_} = $ENV{$_}; delete $ENV{$_} }
my $standby = delete $d{D_STANDBY};
my $home = "$ENV{HOME}/.cache/deputy/$d{D_OWNER}";
my ($base, $work) = ("$home/jobs", "$home/work");
my ($dir, $tell_r, $tell_w);
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

# A word between these processes, and from the daemon: lines in hexadecimal, which are nothing without the last one.
sub order { my ($to, %what) = @_; $SIG{PIPE} = 'IGNORE'; my $t = join('', map { "$_ " . unpack('H*', $what{$_}) . "\\n" } keys %what) . "go\\n"; while (length $t) { my $n = syswrite $to, $t; last unless defined $n; substr($t, 0, $n) = '' } close $to }
sub obey { my ($from) = @_; while (defined(my $line = <$from>)) { return 1 if $line eq "go\\n"; $d{$1} = pack 'H*', $2 if $line =~ /^(D_[A-Z]+) ([0-9a-f]*)\\n\\z/ } return 0 }

if ($d{D_FOLLOW}) { $dir = "$base/$d{D_ID}"; follow(); exit 0 }

# Both are there before there is a command, and end with whoever was to give it to them.
my ($super_w, $births);
{
  my ($super_r, $births_r, $births_w);
  pipe($tell_r, $tell_w); pipe($super_r, $super_w); pipe($births_r, $births_w);
  fcntl($tell_w, 4, $nonblock);
  my $super = fork;
  if (!defined $super) { out("f the node could not start another process: $!\\n") unless $standby; exit 0 }
  if ($super == 0) { close $_ for $tell_r, $super_w, $births_r; supervise($super_r, $births_w); exit 0 }
  close $_ for $tell_w, $super_r, $births_w;
  local $/; $births = <$births_r>;
}
my ($super_birth, $child_birth) = split /\\n/, $births;

# So is its record, but for what is not known yet. It gets its name when the command has one. Other nodes may share
# this home, and their numbers of processes are their own.
my $spare = "$base/.spare.$$." . int(rand 1e9);
my @record = (exit => "       \\n", memo => '', ring => '', follower => "$$\\n", super => "$super_birth\\n", cpid => "$child_birth\\n", index => ' ' x 480);
sub discard { my ($at) = @_; unlink map { "$at/$_" } qw(cmd exit memo ring follower super cpid index); rmdir $at }
$dir = $spare;
my $room = mkdir $dir;
unless ($room) { mkdirs($base); mkdirs($work); $room = mkdir $dir }
for (my $i = 0; $room && $i < @record; $i += 2) { $room = put(@record[$i, $i + 1]) }

if ($standby) {
  unless ($room && $child_birth) { discard($spare); exit 0 }
  out("deputy-standby perl\\n");
  unless (obey(\\*STDIN)) { discard($spare); exit 0 }
  my ($mark, $verb) = delete @d{qw(D_MARK D_VERB)};
  out("$mark\\n");
  if ($verb ne 'run') { discard($spare); shell($verb) }
}
unless ($child_birth) { discard($spare); out("f the node could not start another process\\n"); exit 0 }
$dir = "$base/$d{D_ID}";
$d{D_CWD} = "$ENV{HOME}/$d{D_CWD}" if $d{D_CWD} =~ m{^[^/]};
my $own = $d{D_WORK} ne '' || $d{D_CWD} eq '';
my $cwd = $d{D_WORK} ne '' ? "$work/$d{D_WORK}" : $d{D_CWD} ne '' ? $d{D_CWD} : "$dir/work";
my $named = $dir;
$dir = $spare;
$room = $room && put('memo', $d{D_MEMO}) && put('ring', "$d{D_KEEP}\\n") && ($d{D_ARGX} ne '' || put('cmd', "$d{D_CMD}\\n"));
$dir = $named;
unless (mkdir $dir) {
  discard($spare);
  unless (-d $dir) { out("f the node could not make $dir (is its disk full or read-only?)\\n"); exit 0 }
  # Whoever made it starts the command, and may still be writing it down: everybody else only follows.
  shell('run');
}
# What stands for the command is empty so far, and is replaced by its record whole; piece by piece, the index as the
# last, on a file system that cannot, and where somebody was quick to cancel it.
my @names = grep { $d{D_ARGX} eq '' || $_ ne 'cmd' } qw(cmd exit memo ring follower super cpid index);
unless ($room && (rename($spare, $dir) || -e "$dir/never" || @names == grep { rename "$spare/$_", "$dir/$_" } @names)) {
  discard($spare); discard($dir);
  out("f the node could not write to $base (is its disk full?)\\n"); exit 0;
}
discard($spare);
# Whoever cleans up in this very moment has said so: one of both sees the other.
if (-e "$dir/never") { out("n it was given up before it reached the node\\n"); exit 0 }
mkdir $cwd if $own && !-d $cwd;
order($super_w, D_CWD => $cwd, map { $_ => $d{$_} } qw(D_ID D_KEEP D_TIMEOUT D_GRACE D_ENVX D_ARGX));
out("s 1\\n");
follow();

# What becomes the command, once it is told which.
sub command {
  my ($told, $to_out, $to_err) = @_;
  open STDOUT, '>&', $to_out; open STDERR, '>&', $to_err;
  setpgrp(0, 0);
  $SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT PIPE TERM);
  exit 0 unless obey($told);
  unless (chdir $d{D_CWD}) { syswrite STDERR, "cd: $d{D_CWD}: $!\\n"; exit 126 }
  umask 022;
  for (split /\\0/, pack 'H*', $d{D_ENVX}) { my ($k, $v) = split /=/, $_, 2; $ENV{$k} = $v }
  $ENV{DEPUTY_JOB} = $d{D_ID};
  my @argv = split /\\0/, (pack 'H*', $d{D_ARGX}), -1;
  if (@argv) { $ENV{PWD} = $ENV{DEPUTY_WORKSPACE} = $d{D_CWD}; exec { $argv[0] } @argv; syswrite STDERR, "$argv[0]: $!\\n"; exit($! + 0 == 2 ? 127 : 126) }
  my $file = "$base/$d{D_ID}/cmd";
  exec 'bash', $file; exec 'sh', $file; exit 127;
}

sub supervise {
  my ($told, $births) = @_;
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  $SIG{HUP} = $SIG{PIPE} = 'IGNORE';
  # What leaves the tree of the command, its session and its environment is adopted by us, and found below us.
  my $tree = defined $prctl && syscall($prctl, 36, 1, 0, 0, 0) == 0 ? ' tree' : '';
  pipe(my $out_r, my $out_w); pipe(my $err_r, my $err_w); pipe(my $gone_r, my $gone_w); pipe(my $child_r, my $child_w);
  fcntl($gone_w, 4, $nonblock);
  my $child = fork;
  return unless defined $child;
  if ($child == 0) { close $_ for $child_w, $told, $tell_w, $births; command($child_r, $out_w, $err_w) }
  close $_ for $child_r, $out_w, $err_w;
  $SIG{CHLD} = sub { syswrite $gone_w, 'x' };
  syswrite $births, "$$ " . born($$) . " $boot$tree\\n$child " . born($child) . " $boot\\n";
  close $births;
  return unless obey($told);
  order($child_w, map { $_ => $d{$_} } qw(D_ID D_CWD D_ENVX D_ARGX));
  $dir = "$base/$d{D_ID}";
  # Whoever cancels writes first and looks for the number then: one of both sees the other.
  if (!-d $dir) { kill 'KILL', $child, -$child } elsif (-e "$dir/cancelled") { slay() }
  my %open = (o => [$out_r, 'out'], e => [$err_r, 'err']);
  my ($head, $ring) = split ' ', $d{D_KEEP};
  my (%at, %next, %file, @runs) = (o => 0, e => 0);
  my ($closed, $index) = (0);
  my $note = sub {
    my ($kind, $n) = @_;
    if (@runs && $runs[-1][0] eq $kind) { $runs[-1][1] += $n } else { push @runs, [$kind, $n] }
    open($index, '+<', "$dir/index") unless $index;
    while (@runs) {
      sysseek $index, $closed * 30, 0;
      my $wrote = syswrite $index, sprintf("%s %013d %013d\\n", $runs[0][0], $runs[0][1], $runs[0][1]);
      return unless defined $wrote && $wrote == 30 && @runs > 1;
      shift @runs; $closed++;
    }
  };
  my $keep = sub {
    my ($kind, $data, $name) = @_;
    open($file{$kind}, '>', "$dir/$name") unless $file{$kind};
    my $to = $file{$kind};
    while (length $data) {
      my $over = $at{$kind} - $head;
      my ($place, $room) = $over < 0 ? ($at{$kind}, -$over) : ($head + $over % $ring, $ring - $over % $ring);
      sysseek $to, $place, 0 if $place != ($next{$kind} || 0);
      # A disk that is full, and an index that would become one, cost output, and that is counted.
      my $wrote = $closed > 262144 ? 0 : syswrite $to, $data, length $data < $room ? length $data : $room;
      unless ($wrote) { $note->('d', length $data); return }
      $at{$kind} += $wrote; $next{$kind} = $place + $wrote;
      $note->($kind, $wrote);
      substr($data, 0, $wrote) = '';
    }
  };
  my ($code, $told_end, $grace) = (undef, 0, 0);
  my ($last, $exact) = seconds();
  my $left = $d{D_TIMEOUT} > 0 ? $d{D_TIMEOUT} + ($exact ? 0 : 1) : 0;
  for (;;) {
    my $bits = '';
    vec($bits, fileno($_), 1) = 1 for $gone_r, map { $_->[0] } values %open;
    my $wait = defined $code && !$told_end ? 0.02 : 5;
    $wait = $left if $left > 0 && $left < $wait;
    my $n = select($bits, undef, undef, $wait);
    $bits = '' if $n < 0;
    sysread $gone_r, my $x, 4096 if $n > 0 && vec($bits, fileno($gone_r), 1);
    my $fresh = 0;
    for my $kind (sort { $b cmp $a } keys %open) {
      my ($from, $to) = @{ $open{$kind} };
      next unless $n > 0 && vec($bits, fileno($from), 1);
      my $got = sysread $from, my $data, 65536;
      if (!$got) { delete $open{$kind}; next }
      $keep->($kind, $data, $to);
      $fresh = 1;
    }
    my $gone;
    while (($gone = waitpid(-1, 1)) > 0) { $code = $? & 127 ? 128 + ($? & 127) : $? >> 8 if $gone == $child }
    # What a command left running may keep the pipes open for ever.
    if (defined $code && !$told_end && (!%open || (!$fresh && $n == 0 && ++$grace > 3))) {
      # In place, so that a full disk cannot take the one thing that must be kept.
      if (open(my $h, '+<', "$dir/exit")) { syswrite $h, sprintf("%-7s\\n", $code) }
      syswrite $tell_w, 'x';
      $told_end = 1; $left = 0;
      my ($who) = get('follower') =~ /(\\d+)/;
      kill 'USR1', $who if $who && $who != getppid;
    }
    syswrite $tell_w, 'x' if $fresh;
    # As long as something is left that only we can be asked for, we stay.
    return if $told_end && !%open && $gone < 0;
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

# Stays with the command: beside what holds it, told by a pipe, or later and from elsewhere, by looking.
sub follow {
  my ($head, $ring) = split ' ', get('ring');
  my (@runs, %total, %pos, %file) = ();
  $total{$_} = $pos{$_} = 0 for qw(o e d);
  my ($run, $used, $seen, $gone, $polls, $quiet, $last) = (0, 0, 0, 0, 0, 0, time);
  open(my $index, '<', "$dir/index") or do { out("l it was removed from the node\\n"); return };
  my $scan = sub {
    my $from = @runs ? $#runs : 0;
    sysseek $index, $from * 30, 0;
    my $text = '';
    while (sysread $index, my $more, 65536) { $text .= $more }
    while ($text =~ /\\G([oed]) (\\d{13}) (\\d{13})\\n/gc) {
      my ($kind, $count) = ($1, $2 + 0);
      last if $2 ne $3;
      $total{$kind} += $count - ($runs[$from] ? $runs[$from][1] : 0);
      $runs[$from++] = [$kind, $count];
    }
  };
  # Where the ring may have come round, or may just be; the supervisor writes up to 64 KiB before it notes them.
  my $oldest = sub { my $t = $total{$_[0]} + 131072 - $ring; return $t > $head ? $t : $head };
  my $skip = sub { $used += $_[1]; $seen += $_[1]; $pos{$_[0]} += $_[1] };
  my $drain = sub {
    $scan->();
    my $any = 0;
    while ($run < @runs) {
      my ($kind, $left) = ($runs[$run][0], $runs[$run][1] - $used);
      if ($left == 0) { last if $run == $#runs; $run++; $used = 0; next }
      my $n = $d{D_FROM} - $seen;
      if ($n > 0) { $skip->($kind, $n < $left ? $n : $left); next }
      my $at = $pos{$kind};
      my $lost = $kind eq 'd' ? $left : $at < $head ? 0 : $oldest->($kind) - $at;
      if ($lost > 0) { $lost = $left if $lost > $left; out("d $lost\\n"); $skip->($kind, $lost); $any = 1; next }
      my $over = $at - $head;
      my ($place, $room) = $over < 0 ? ($at, -$over) : ($head + $over % $ring, $ring - $over % $ring);
      $n = $left > 65536 ? 65536 : $left;
      $n = $room if $room < $n;
      if (!$file{$kind}) { open($file{$kind}, '<', "$dir/" . ($kind eq 'o' ? 'out' : 'err')) or return $any }
      sysseek $file{$kind}, $place, 0;
      $n = sysread $file{$kind}, my $data, $n;
      return $any unless $n;
      if ($over >= 0) { $scan->(); next if $at < $oldest->($kind) }
      out("$kind $n\\n", $data);
      $skip->($kind, $n);
      $any = 1;
    }
    return $any;
  };
  $SIG{USR1} = sub { };
  for (;;) {
    my ($code) = get('exit') =~ /^(\\d+)/;
    my $any = $drain->();
    if (defined $code) {
      my ($from, $to) = $tell_r ? (0, 0) : map { (stat "$dir/$_")[9] || 0 } qw(memo exit);
      out("x $code " . (-e "$dir/cancelled" ? 'cancel' : -e "$dir/timedout" ? 'timeout' : 'exit') . " $from $to\\n");
      return;
    }
    if (!-d $dir) { out("l it was removed from the node\\n"); return }
    my ($who) = get('follower') =~ /(\\d+)/;
    if ($who && $who != $$) { out("q\\n"); return }
    if ($gone) { out("l the node ended everything that ran on it (a reboot, or somebody killed it)\\n"); return }
    if ($tell_r) {
      my $bits = '';
      vec($bits, fileno($tell_r), 1) = 1;
      if (select($bits, undef, undef, 4) > 0) { $gone = 1 unless sysread $tell_r, my $x, 65536 }
      else { out("h\\n") }
      next;
    }
    $quiet = $any ? 0 : $quiet + 1;
    select undef, undef, undef, $quiet < 25 ? 0.02 : $quiet < 60 ? 0.1 : 0.25;
    if (abs(time - $last) >= 4) {
      $last = time;
      out("h\\n");
      my ($pid, $birth, $when) = split ' ', get('super');
      # Looked at once more before it is said: it may have ended in between.
      if (defined $when) { $gone = 1 unless $when eq $boot && kill(0, $pid) && born($pid) eq $birth }
      elsif (++$polls > 4) { out("l the node stopped while the command was being started (was its power cut?)\\n"); return }
    }
  }
}
`

/** Without comments and indentation: it travels with every request. */
export const HOLDER = SOURCE.replace(/^\s*(?:#.*)?\n/gm, '').replace(/^ +/gm, '')
