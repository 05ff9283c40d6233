#!/bin/sh
# GUEST0204 capabilities: what setpriv and capsh give, keep and take, over changes of user and exec
section() { echo "--- $*"; }
sets() { grep -E '^(Uid|Cap|NoNew)' /proc/self/status; }
run() { echo "\$ $*"; "$@"; status=$?; [ $status = 0 ] || echo "status $status"; }
show="grep -E ^(Uid|Cap|NoNew) /proc/self/status"
section sets
sets
run setpriv --dump
run capsh --print
section users
run setpriv --reuid 1000 --regid 1000 --clear-groups id
run setpriv --reuid 1000 --clear-groups $show
run setpriv --ruid 1000 $show
run setpriv --euid 1000 $show
run setpriv --reuid 1000 --clear-groups --inh-caps +kill --ambient-caps +kill $show
run setpriv --reuid 1000 --clear-groups --inh-caps +chown,+kill --ambient-caps +chown sh -c 'touch a 2>&1; chown 5 /tmp/work; stat -c %u /tmp/work; kill -0 1'
chown 0 /tmp/work
run setpriv --ruid 1000 --no-new-privs $show
section limits
run setpriv --bounding-set -kill,-setuid $show
run setpriv --inh-caps -all --bounding-set -all $show
run setpriv --inh-caps -all --bounding-set -all chown 7 /tmp/work
run setpriv --inh-caps -all --bounding-set -all su nobody -s /bin/sh -c id
run setpriv --securebits +noroot,+noroot_locked $show
run setpriv --securebits +noroot,+noroot_locked setpriv --securebits -noroot true
run setpriv --securebits +no_setuid_fixup setpriv --reuid 1000 --clear-groups setpriv --dump
run setpriv --securebits +keep_caps_locked setpriv --reuid 1000 --clear-groups id -u
section single
run setpriv --reuid 1000 --clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search head -c 5 /etc/shadow
run setpriv --reuid 1000 --clear-groups head -c 5 /etc/shadow
run setpriv --reuid 1000 --clear-groups --inh-caps +sys_nice --ambient-caps +sys_nice nice -n -5 nice
run setpriv --reuid 1000 --clear-groups nice -n -5 nice
run setpriv --reuid 1000 --clear-groups --inh-caps +setuid --ambient-caps +setuid setpriv --reuid 7 id -u
run setpriv --reuid 1000 --clear-groups --inh-caps +sys_chroot --ambient-caps +sys_chroot chroot / id -u
run setpriv --reuid 1000 --clear-groups chroot / id -u
run setpriv --reuid 1000 --clear-groups --inh-caps +sys_resource --ambient-caps +sys_resource sh -c 'ulimit -Hn 1048576 && ulimit -Hn'
section capsh
run capsh --drop=cap_kill,cap_chown --print
run capsh --drop=cap_kill -- -c 'grep Cap /proc/self/status'
run capsh --user=nobody -- -c 'id -u; grep Cap /proc/self/status'
run capsh --keep=1 --user=nobody --inh=cap_kill --addamb=cap_kill -- -c 'id -u; grep Cap /proc/self/status'
run capsh --secbits=0x2f --print
run capsh --caps=cap_setpcap,cap_setuid+ep --print
run capsh --caps= -- -c 'chown 7 /tmp/work'
run capsh --has-p=cap_kill --has-b=cap_chown
run capsh --has-a=cap_kill
run capsh --mode=NOPRIV --print
section others
sleep 60 & other=$!
run getpcaps $other | sed "s/$other/PID/"
setpriv --reuid 1000 --clear-groups sleep 60 & user=$!
sleep 1
run getpcaps $user | sed "s/$user/PID/"
setpriv --reuid 1000 --clear-groups sh -c "kill $other" || echo "refused"
setpriv --reuid 1000 --clear-groups sh -c "kill $user" && echo "killed"
setpriv --reuid 1000 --clear-groups --inh-caps +kill --ambient-caps +kill sh -c "kill -0 $other" && echo "permitted"
kill $other
run getpcaps 99999
section daemons
run start-stop-daemon --start --chuid nobody --exec /bin/grep -- Cap /proc/self/status
run start-stop-daemon --start --background --make-pidfile --pidfile /tmp/work/pid --chuid www-data --exec /bin/sleep -- 50
sleep 1
stat -c %U "/proc/$(cat pid)"
run start-stop-daemon --stop --pidfile /tmp/work/pid --retry 5
run su nobody -s /bin/sh -c "$show"
run runuser -u nobody -- $show
