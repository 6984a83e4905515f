# memory BYTES: makes a file in memory, prints the number of its descriptor and waits. A line on stdin seals the file:
# from then on nobody can write to it, not even a QEMU that a job has taken over; private mappings stay possible.
use strict;
use warnings;

# From the headers of Linux on x86-64.
my ($MEMFD_CREATE, $ALLOW_SEALING, $ADD_SEALS) = (319, 2, 1033);
my $ALL_SEALS = 1 | 2 | 4 | 8;

my $name = 'deputy-microvm';
my $fd = syscall $MEMFD_CREATE, $name, $ALLOW_SEALING;
die "memfd_create: $!\n" if $fd < 0;
open my $file, '+<&=', $fd or die "$!\n";
truncate $file, $ARGV[0] or die "truncate: $!\n";
$| = 1;
print "$fd\n";
exit 0 unless defined <STDIN>;
# The kernel refuses while a process that has just ended still has the file mapped.
for (my $tries = 100; !fcntl $file, $ADD_SEALS, $ALL_SEALS; $tries--) {
  die "cannot seal: $!\n" if $tries == 0;
  select undef, undef, undef, 0.1;
}
print "sealed\n";
