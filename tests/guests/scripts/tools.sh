#!/bin/bash
# GUEST0202 util-linux's tools, file, bc, less, procps and completion's functions, as far as their answers are the same everywhere
set -u
section() { printf -- '--- %s\n' "$1"; }

section 'util-linux'
printf '%s\n' 'a b' 'long word' | column -t
echo 'some text' | hexdump -C
printf '1\n2\n3\n4\n5\n' | rev | column -c 20
look -f ro /etc/passwd | head -n 1
getopt -o ab: -l long,name: -- -a --name value rest
setsid -w sh -c 'ps -o sid= -o pid= -p $$' | { read -r session process; [ "$session" = "$process" ] && echo 'a session of its own'; }
flock lock -c 'echo locked'
flock -n lock -c 'flock -n lock -c true || echo "cannot be locked twice"'
mkdir point && mount -t tmpfs -o size=1M tmpfs point && mount | grep -c "$PWD/point type tmpfs"
findmnt -n -o FSTYPE,TARGET --target point | sed "s:$PWD:.:"
head -c 2000000 /dev/zero >point/full 2>/dev/null || echo 'size is limited'
umount point && rmdir point && echo unmounted
mountpoint /proc; mountpoint -q /tmp/work || echo 'no mount point'
prlimit --nofile --output SOFT --noheadings | tr -d ' '
prlimit --nofile=50:60 bash -c 'ulimit -Sn; ulimit -Hn'
nsenter --version | cut -c1-8
taskset -p $$ | sed 's/^pid [0-9]*/pid N/; s/mask: .*/mask/'
chrt -m | head -n 1
renice -n 5 $$ >/dev/null && ps -o ni= -p $$ | tr -d ' '
mcookie | wc -c
uuidgen -r 2>/dev/null | wc -c
namei -m /etc/passwd | tail -n 2
whereis -b ls | cut -d: -f1
logger -s 'to nobody' 2>&1 | sed 's/^.*: //' | tail -n 1
cal 11 2026 2>/dev/null | head -n 2 | tail -n 1
ul <<<plain

section file
file -b /bin/ls | cut -d, -f1,2
file -b --mime-type /etc/passwd /usr/bin/mac-info
printf '\x1f\x8b\x08' >z; file -b z | cut -d' ' -f1,2

section bc
bc -l <<<'scale=30; 4*a(1)'
bc <<<'define f(n) { if (n < 2) return 1; return n * f(n - 1); } f(40)'
echo 'obase=16; 2^64 - 1' | bc

section procps
sleep 100 & child=$!
until state=$(ps -o stat=,comm= -p $child); [[ $state == S*sleep ]]; do :; done; echo "$state"; pgrep -P $$ -x sleep | grep -cx $child # first it is the shell's copy, which runs
pkill -P $$ sleep; wait $child 2>/dev/null; echo "status $?"
ps -o pid,ppid,comm -p 1 | tail -n 1
ps axf | grep -c '[t]ools.sh'
free | head -n 1; uptime | grep -c 'load average'
vmstat | head -n 2 | tail -n 1
pidof -s init; pwdx $$ | cut -d: -f2
sysctl -n kernel.ostype
slabtop --version | cut -d' ' -f1; w -h | wc -l; tload --version | cut -d' ' -f1
pmap $$ | tail -n 1 | cut -d' ' -f2

section 'less and others'
seq 100 | less -F | tail -n 1
seq 3 | more
nano --version | sed -n 1p
vi -es -u NONE -c 'normal ihello' -c 'wq! v' </dev/null; cat v
clear -V | cut -d' ' -f1; tput -T xterm cols; infocmp -1 xterm | sed -n 2p
hostname; stty size </dev/null 2>&1 | sed 's/.*: //'
xxd -v 2>&1 | head -c 3; echo
