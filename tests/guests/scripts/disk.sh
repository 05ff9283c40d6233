#!/bin/sh
# GUEST0160 a disk holds a file system that its tools find sound; what is written is what is read
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
    if "$@" >out 2>&1; then echo "ok $what"; else echo "FAILED $what: $?"; tail -5 out; fi
}
size=$(blockdev --getsize64 $disk)
name=${disk#/dev/}
[ $name = vda ] && major=254 || major=259
check "the device is a block device of group disk" "brw-rw---- 1 root disk $major, 0" \
    "$(ls -l $disk | sed 's/,  */, /' | cut -d' ' -f1-6)"
check "its size is that of /proc/partitions and /sys" "$((size / 1024)) $((size / 512))" \
    "$(sed -n "s/^ *$major *0 *\([0-9]*\) $name\$/\1/p" /proc/partitions) $(cat /sys/block/$name/size)"

# Data: what is written is read again, through the cache, from the disk, and without the cache.
seq 1 200000 | head -c 1000000 >data
passes "a pattern is written" dd if=data of=$disk bs=4096 seek=100 conv=fsync,notrunc
for flags in "" "iflag=direct"; do
    blockdev --flushbufs $disk
    dd if=$disk of=back bs=4096 skip=100 count=244 $flags 2>/dev/null
    truncate -s 999424 back
    check "it is read again ${flags:-through the cache}" "$(head -c 999424 data | md5sum)" "$(md5sum <back)"
done
printf 'abcdefgh' | dd of=$disk bs=1 seek=1003 conv=notrunc 2>/dev/null
check "single bytes are written into a page" "abcdefgh" "$(dd if=$disk bs=1 skip=1003 count=8 2>/dev/null)"
passes "a direct write of whole blocks" dd if=data of=$disk bs=512 count=16 seek=40 oflag=direct conv=notrunc
check "it is seen through the cache" "$(head -c 8192 data | md5sum)" \
    "$(dd if=$disk bs=512 skip=40 count=16 2>/dev/null | md5sum)"
dd if=data of=$disk bs=500 count=1 oflag=direct conv=notrunc >out 2>&1
check "a direct write of a part of a block is refused" 1 $?
dd if=data of=$disk bs=4096 seek=$((size / 4096)) count=1 >out 2>&1
check "beyond the end there is no room" "1 1" "$? $(grep -c 'No space left' out)"
check "and nothing to read" 0 "$(dd if=$disk bs=4096 skip=$((size / 4096)) 2>/dev/null | wc -c)"

# A file system on the whole disk.
passes "mkfs.ext4" mkfs.ext4 -q -F $disk
passes "e2fsck finds it sound" e2fsck -f -n $disk
printf 'write data file\nmkdir directory\nquit\n' >commands
passes "debugfs writes a file into it" debugfs -w -f commands $disk
passes "e2fsck finds it sound again" e2fsck -f -n $disk
blockdev --flushbufs $disk
debugfs -R 'dump file copy' $disk >out 2>&1
check "the file is read again from the disk" "$(md5sum <data)" "$(md5sum <copy)"
check "blkid" ext4 "$(blkid -o value -s TYPE $disk)"
check "lsblk" "$name disk" "$(lsblk -n -r -o NAME,TYPE)"
