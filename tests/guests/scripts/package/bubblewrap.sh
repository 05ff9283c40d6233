#!/bin/sh
# PACKAGE0065 bubblewrap: runs programs in a root of its own, with files and directories bound into it, read-only and in memory
# A root that was loaded into memory at the start cannot be replaced under Debian's kernel, so this goes on in a root that is mounted.
if [ -z "$INSIDE" ]; then
    mkdir -p /host; mount --rbind / /host
    INSIDE=1 chroot /host "$0"
    umount -l /host; rmdir /host
    exit
fi
cd /tmp/work
run() { echo "\$ $*"; "$@" 2>&1; status=$?; [ $status = 0 ] || echo "status $status"; }
usr="--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
run bwrap $usr sh -c 'echo here; ls /'
run bwrap $usr touch /usr/new
run bwrap $usr --tmpfs /tmp --dir /var/lib --chdir /tmp sh -c 'echo text >a; ls -l a | cut -c1-10; pwd; ls -d /var/*; ls /tmp'
mkdir data; echo outside >data/file
run bwrap $usr --bind /tmp/work/data /data sh -c 'cat /data/file; echo inside >/data/made; mkdir /data/d'
cat data/made; ls data
run bwrap $usr --ro-bind data /data sh -c 'cat /data/file; echo no >/data/made'
run bwrap $usr --dev /dev --proc /proc sh -c 'ls /dev; echo x >/dev/null; readlink /proc/self/exe; grep -c . /proc/self/mountinfo'
run bwrap $usr --dev-bind / / --tmpfs /mnt sh -c 'touch /mnt/x; ls /mnt; cut -d" " -f5,6 /proc/self/mountinfo | tail -1'
ls /mnt
mkdir root root/bin; cp /bin/busybox root/bin; for n in sh ls mount umount hostname cat id; do ln -s busybox root/bin/$n; done
run bwrap --bind root / --proc /proc --tmpfs /tmp /bin/sh -c 'ls /; echo "in the root" >/made; cat /made; id -u; mount | wc -l'
cat root/made
run bwrap --bind root / --tmpfs /tmp --bind data /tmp/d --remount-ro /tmp /bin/sh -c 'ls /tmp/d; echo x >/tmp/x'
run bwrap $usr --unsetenv HOME --setenv A b --clearenv --setenv C d env
run bwrap $usr --new-session --die-with-parent sh -c 'exit 7'
run bwrap $usr --file 3 /note 3<data/file cat /note
run bwrap $usr --bind /nowhere /x true
run bwrap $usr nothing
grep -c /newroot /proc/self/mountinfo
