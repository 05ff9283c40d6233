#!/bin/sh
# GUEST0161 the disk's driver ends again and again in the middle of its work: no program sees it, and nothing is lost
export LC_ALL=C
# Whichever of the two the machine has.
disk=/dev/vda
[ -b $disk ] || disk=/dev/nvme0n1
seq 1 1000000 | head -c 6000000 >data
dd if=data of=$disk bs=64k conv=fsync,notrunc 2>/dev/null || echo "FAILED to write"
blockdev --flushbufs $disk
dd if=$disk bs=64k 2>/dev/null | head -c 6000000 | cmp - data && echo "ok everything is there"
mkfs.ext4 -q -F $disk && e2fsck -f -n $disk >/dev/null 2>&1 && echo "ok a file system is made and sound"
[ "$(dd if=/dev/kmsg bs=8192 iflag=nonblock 2>/dev/null | grep -c 'driver disk was started again')" -ge 2 ] &&
    echo "ok the driver was started again"
