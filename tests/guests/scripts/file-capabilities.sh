#!/bin/sh
# GUEST0215 file-capabilities: what setcap gives to programs, which users may give it, and what takes it away again
section() { echo "--- $*"; }
run() { echo "\$ $*"; "$@" 2>&1; status=$?; [ $status = 0 ] || echo "status $status"; }
user="setpriv --reuid 1000 --regid 1000 --clear-groups"
chmod 755 .
program() { rm -f "$1"; cp "$(command -v "$2")" "$1"; }
section set
program read cat
run getcap read
run getcap /usr/bin/ping
run stat -c "%a %U %n" /usr/bin/ping
run ls /run/attributes
run setcap cap_dac_read_search+ep read
run getcap -n read
run setcap -v cap_dac_read_search+ep read
run setcap -v cap_kill+ep read
run getfattr --absolute-names -e hex -d -m - read
run $user setcap cap_kill+ep read
run $user getcap read
run setcap nonsense+ep read
run setcap cap_kill+ep missing
run setfattr -n security.capability -v 0x0100000201000000 read
run setfattr -n security.capability -v 0x0100000420000000000000000000000000000000 read
run setcap -n 1000 cap_kill+ep read
run getcap -n read
run $user ./read /proc/self/status | grep Cap
section given
run setcap cap_dac_read_search+ep read
run $user ./read /proc/self/status | grep -E '^(Uid|Cap)'
run $user ./read /etc/shadow | head -c 5; echo
run $user cat /etc/shadow
run setcap cap_kill,cap_chown+p read
run $user ./read /proc/self/status | grep Cap
run setcap cap_kill,cap_chown+ei read
run $user ./read /proc/self/status | grep Cap
run $user --inh-caps +kill ./read /proc/self/status | grep Cap
run $user --inh-caps +kill,+chown --ambient-caps +kill,+chown ./read /proc/self/status | grep Cap
run ./read /proc/self/status | grep Cap
section refused
run setcap cap_kill,cap_chown+ep read
run $user --bounding-set -kill ./read /proc/self/status
run $user setpriv --no-new-privs ./read /proc/self/status | grep Cap
run setcap cap_kill+p read
run $user --bounding-set -kill ./read /proc/self/status | grep Cap
mkdir mounted && mount -t tmpfs -o nosuid none mounted && chmod 755 mounted
cp read mounted && setcap cap_kill+ep mounted/read
run $user mounted/read /proc/self/status | grep Cap
umount mounted
section script
printf '#!/bin/sh\ngrep Cap /proc/self/status\n' >script && chmod 755 script
run setcap cap_kill+ep script
run $user ./script
section set-user-id
chmod 4755 read
run setcap cap_kill+ep read
run $user ./read /proc/self/status | grep -E '^(Uid|Cap)'
section secure
program true /bin/true
run $user env LD_SHOW_AUXV=1 ./true | grep SECURE
run setcap cap_kill+ep true
run $user env LD_SHOW_AUXV=1 ./true | grep SECURE
run $user setpriv --no-new-privs env LD_SHOW_AUXV=1 ./true | grep SECURE
run env LD_SHOW_AUXV=1 ./true | grep SECURE
run setcap cap_kill+i true
run $user env LD_SHOW_AUXV=1 ./true | grep SECURE
run setcap -r true
chmod 4755 true
run $user env LD_SHOW_AUXV=1 ./true | grep SECURE
run $user setpriv --no-new-privs env LD_SHOW_AUXV=1 ./true | grep SECURE
section taken
with() { program read cat; chmod 777 read; setcap cap_kill+ep read; }
with; chmod 700 read; getcap -n read
with; mv read other; getcap -n other; ln other read; getcap -n read; rm other
with; cp read other; getcap -n other
with; cp -p --preserve=all read other; getcap -n other
with; chown 1000 read; getcap -n read
with; printf x >>read; getcap -n read
with; truncate -s 100 read; getcap -n read
with; $user sh -c 'echo >read'; getcap -n read
with; $user chown 1000 read; getcap -n read
with; touch read; getcap -n read
with; run setcap -r read; getcap -n read; run setcap -r read
with; run setfattr -x security.capability read; getcap -n read
mkdir directory; run setcap cap_kill+ep directory
with; mkdir -p tree/a; mv read tree/a/read; run getcap -r tree
