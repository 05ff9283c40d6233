#!/bin/sh
# PACKAGE0004 perl: runs a program with its modules, processes and regular expressions
cat >program.pl <<'END'
use strict; use warnings;
use Data::Dumper; use List::Util qw(sum first shuffle); use Digest::SHA qw(sha1_hex); use Storable qw(dclone);
use File::Find; use IO::Socket::UNIX; use Time::Local; use Encode; use MIME::Base64; use threads;
$Data::Dumper::Sortkeys = 1; $Data::Dumper::Indent = 1;
print Dumper(dclone({ a => [1, 2], b => { c => undef } }));
print sum(1 .. 100), " ", sha1_hex("x"), " ", encode_base64("macadamia");
my %count; $count{$_}++ for "the quick brown fox" =~ /[aeiou]/g;
print join(", ", map { "$_ $count{$_}" } sort keys %count), "\n";
open(my $sort, "|-", "sort -n") or die; print $sort "$_\n" for 3, 1, 2; close $sort;
print "status ", $? >> 8, "\n";
my $server = IO::Socket::UNIX->new(Local => "s", Listen => 1) or die;
if (fork == 0) { my $c = IO::Socket::UNIX->new(Peer => "s"); print $c "hello\n"; exit 5 }
my $c = $server->accept; print scalar <$c>; wait; print $? >> 8, "\n";
print threads->create(sub { return $_[0] ** 2 }, 12)->join, "\n";
print timegm(0, 0, 0, 1, 0, 124), " ", length(decode("UTF-8", "\xc3\xa9")), "\n";
local $SIG{ALRM} = sub { die "late\n" }; eval { alarm 1; select undef, undef, undef, 10 }; print $@;
format STDOUT =
@<<<<< @>>>>
"left", "right"
.
write;
END
perl program.pl
echo "status $?"
printf 'a b\nc d\n' | perl -lane 'print "$F[1] $F[0]"'
printf 'x\n' >file && perl -pi.bak -e 's/x/y/' file && cat file file.bak
perl -c program.pl
