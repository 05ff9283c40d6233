#!/bin/sh
# GUEST0904 namespaces: what unshare, nsenter and setpriv make of namespaces of users, processes, mounts, names and System V objects
section() { echo "--- $*"; }
run() { echo "\$ $*"; "$@" 2>&1; status=$?; [ $status = 0 ] || echo "status $status"; }
user() { run setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
work=/tmp/work
chmod 777 $work
section users
user unshare -U id
user unshare -Ur sh -c 'id; cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; grep Cap /proc/self/status'
user unshare -Ur sh -c 'stat -c "%u %g" /etc/passwd /proc/1; touch a; stat -c "%u %g" a; chown 5 a; chmod 600 /etc/passwd; cat /etc/shadow'
stat -c '%u %g' a
user unshare -Ur sh -c 'kill -9 1; hostname x; mount -t tmpfs x /mnt; mknod n c 1 3; date -s 2020-01-01; echo 1 >/proc/sys/fs/protected_symlinks'
user unshare -Ur unshare -Ur sh -c 'id -u; cat /proc/self/uid_map'
user unshare -Urm sh -c 'mount -t tmpfs x /mnt && touch /mnt/a && ls /mnt && grep -c " /mnt " /proc/self/mountinfo; mount -t sysfs x /mnt; mount -t proc x /mnt; mount --bind /etc /mnt && ls -d /mnt/passwd; umount /proc'
ls /mnt
unshare -U sh -c 'touch up; while [ ! -e mapped ]; do sleep 0.1; done; cat /proc/self/uid_map; setpriv --reuid 3 --regid 4 --clear-groups sh -c "id; touch b"' &
while [ ! -e up ]; do sleep 0.1; done
echo '0 100 10' >/proc/$!/uid_map; echo '0 100 10' >/proc/$!/gid_map
touch mapped; wait
stat -c '%u %g' b
user unshare --setgroups allow -Ur id -u
section processes
run unshare -f -p sh -c 'echo $$; kill -9 $$; kill -TERM 1; echo still here'
run unshare -f -p --mount-proc sh -c 'echo $$; ls -d /proc/[0-9]*; grep -E "^(Pid|PPid|NSpid)" /proc/self/status; readlink /proc/self'
user unshare -Urpfm --mount-proc sh -c 'id -u; ls -d /proc/[0-9]*; exec 2>/dev/null; sleep 100 & echo $!; kill $!; wait $! || echo ended $?'
run unshare -f -p sh -c 'sleep 1000 & sleep 1000 & exec true'
run unshare -f -p sh -c '(sleep 0.1; exit 3) & wait $!; echo $?'
run unshare -f -p --kill-child sh -c 'exit 5'
section names
run unshare -u sh -c 'hostname inner; hostname; uname -n'
hostname
user unshare -Uru sh -c 'hostname inner; hostname'
section objects
ipcmk -M 4096 >/dev/null
ipcs -m | grep -c 4096
run unshare -i sh -c 'ipcs -m | grep -c 4096; ipcmk -Q >/dev/null; ipcs -q | grep -c 0x'
ipcs -q | grep -c 0x
ipcrm -a
section files
readlink /proc/self/ns/user /proc/self/ns/pid /proc/self/ns/uts /proc/self/ns/ipc
for kind in user mnt pid uts ipc; do
    case $kind in user) flag=-U ;; mnt) flag=-m ;; pid) flag='-p -f' ;; uts) flag=-u ;; ipc) flag=-i ;; esac
    own=$(readlink /proc/self/ns/$kind)
    other=$(unshare $flag readlink /proc/self/ns/$kind)
    [ "$own" != "$other" ] && echo "$kind differs"
done
# The first child becomes the first process of the new namespace.
mkfifo go
unshare -u -m -p sh -c 'cat go & hostname there; mount -t tmpfs x /mnt; touch /mnt/inside ready; wait' &
while [ ! -e ready ]; do sleep 0.1; done
nsenter -t $! -u hostname
nsenter -t $! -m ls /mnt
nsenter --pid=/proc/$!/ns/pid_for_children sh -c 'kill -9 1; kill -0 1; echo $?'
echo end >go
wait
