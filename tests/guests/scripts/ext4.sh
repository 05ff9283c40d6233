#!/bin/sh
# GUEST0169 an ext4 file system of Debian's mkfs is mounted, used, unmounted and sound
export LC_ALL=C
# Whichever of the two the machine has.
disk=/dev/vda
[ -b $disk ] || disk=/dev/nvme0n1
check() { # check WHAT EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then echo "ok $1"; else echo "FAILED $1: expected '$2', got '$3'"; fi
}
passes() { # passes WHAT COMMAND...
    what=$1
    shift
    if "$@" >/tmp/out 2>&1; then echo "ok $what"; else echo "FAILED $what: $?"; tail -5 /tmp/out; fi
}
fails() { # fails WHAT WORDS COMMAND...
    what=$1
    words=$2
    shift 2
    if "$@" >/tmp/out 2>&1; then echo "FAILED $what: no error"; else check "$what" 1 "$(grep -c "$words" /tmp/out)"; fi
}
fails "an empty disk cannot be mounted" "wrong fs type\|bad option" mount -t ext4 $disk /mnt
passes "mkfs.ext4" mkfs.ext4 -q -F -b 4096 $disk
passes "mount" mount -t ext4 $disk /mnt
check "the list of mounts" "$disk /mnt ext4 rw,relatime 0 0" "$(grep /mnt /proc/mounts)"
check "stat -f says what it is" "ext2/ext3 4096" "$(stat -f -c '%T %S' /mnt)"
fails "it is mounted once" "already mounted\|busy" mount -t ext4 $disk /mnt
cd /mnt || exit 1

# Files, names and attributes.
echo content >file
mkdir -p a/b/c
mv file a/b/c
ln a/b/c/file hard
ln -s a/b/c soft
check "a file by its names" "content content" "$(cat hard) $(cat soft/file)"
check "its links" 2 "$(stat -c %h hard)"
# A change of the owner takes the set-user-id bit away, root's too.
chown 12:34 hard
chmod 4751 hard
touch -d '2001-02-03 04:05:06.123456789 UTC' hard
check "attributes" "4751 12 34 2001-02-03 04:05:06.123456789 +0000" "$(TZ=UTC stat -c '%a %u %g %y' a/b/c/file)"
mkfifo fifo
mknod null c 1 3
check "nodes" "fifo character special file 1,3" "$(stat -c %F fifo) $(stat -c '%F %t,%T' null)"
dd if=/dev/zero of=sparse bs=1 count=1 seek=100000000 2>/dev/null
check "a file with a hole" "100000001 yes" "$(stat -c %s sparse) $([ "$(stat -c %b sparse)" -lt 100 ] && echo yes)"
seq 1 100000 >numbers
check "data of some size" "$(seq 1 100000 | md5sum)" "$(md5sum <numbers)"
truncate -s 1000 numbers
seq 1 10 >>numbers
check "a file is cut and grows" 1021 "$(stat -c %s numbers)"
fails "a directory is not empty" "not empty" rmdir a

# Data in memory. They may be stored at any moment, so there are several tries.
changed() { # changed AT_LEAST_KIB
    awk -v least="$1" '/^Dirty:|^Writeback:/ { sum += $2 } END { exit sum < least }' /proc/meminfo
}
for try in 1 2 3 4 5 6 7 8 9 10; do
    dd if=/dev/zero of=new$try bs=64k count=16 2>/dev/null
    changed 1024 && break
done
check "changed pages are counted" 0 $?
check "they have the space that they will get" 2048 "$(stat -c %b new1)"
sync
# Where the data are in many places, some more blocks say where.
stored=$(stat -c %b new1)
check "and what is stored" yes "$([ "$stored" -ge 2048 ] && [ "$stored" -le 2080 ] && echo yes)"
rm new*

# A tree of many files: /usr/include, by tar and by cp.
mkdir tree
(cd /usr/include && tar cf - .) | (cd tree && tar xf -)
cp -a /usr/include copy
passes "tar has copied a tree" diff -r /usr/include tree
passes "cp has copied a tree" diff -r /usr/include copy
check "with its times" "$(cd /usr/include && find . -type f -newermt 1990-01-01 -printf '%p %T@\n' | sort | md5sum)" \
    "$(cd copy && find . -type f -newermt 1990-01-01 -printf '%p %T@\n' | sort | md5sum)"
mkdir many
(cd many && seq -f 'name-%g' 1 2000 | xargs touch)
check "a directory of many names" 2000 "$(ls many | wc -l)"
rm -r many
passes "sync" sync
passes "a program runs from the disk" sh -c 'cp /bin/echo . && ./echo works'

# The end.
fails "a file system in use stays" "busy" umount /mnt
cd /
before=$(cd /mnt && find . -type f | sort | xargs md5sum | md5sum)
passes "umount" umount /mnt
passes "e2fsck finds it sound" e2fsck -f -n $disk
passes "it is mounted again, without writing" mount -t ext4 -o ro $disk /mnt
check "all files are as they were" "$before" "$(cd /mnt && find . -type f | sort | xargs md5sum | md5sum)"
fails "nothing is written there" "Read-only" touch /mnt/new
passes "umount" umount /mnt
mount -t ext4 $disk /mnt
rm -r /mnt/tree /mnt/copy
passes "remount without writing" mount -o remount,ro /mnt
fails "nothing is written there" "Read-only" touch /mnt/new
umount /mnt
passes "e2fsck finds it sound again" e2fsck -f -n $disk
