#!/bin/sh
# GUEST0950 files are changed and synchronized on a disk whose writes are recorded
export LC_ALL=C
# The program's own pages are after the file system.
mkfs.ext4 -q -F -b 4096 /dev/vda 40M || exit 1
mount -t ext4 /dev/vda /mnt || exit 1
/tests/bin/power-cuts /mnt /dev/vda 250 1
umount /mnt
e2fsck -f -n /dev/vda >/tmp/out 2>&1 || cat /tmp/out
echo done
