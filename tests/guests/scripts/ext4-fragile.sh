#!/bin/sh
# GUEST0271 the file server ends thirty times in the middle of its work: no program sees it, and nothing is lost
export LC_ALL=C
disk=/dev/vda
exec 3</dev/kmsg
ends=0
mkfs.ext4 -q -F -b 4096 $disk && mount -t ext4 $disk /mnt || echo "FAILED to mount"
mkdir /mnt/tree
(cd /usr/include && tar cf - .) | (cd /mnt/tree && tar xf -) || echo "FAILED to unpack"
round=0
while [ $ends -lt 30 ] && [ $round -lt 40 ]; do
    round=$((round + 1))
    new=/mnt/round$round
    cp -a /mnt/tree $new || echo "FAILED to copy in round $round"
    # An open file without a name, whose number and contents stay.
    exec 4<>$new/open 5<$new/open
    rm $new/open
    seq 1 $round >&4
    number=$(stat -L -c %i /dev/fd/4)
    find $new -name '*.h' -size -4 | head -100 | while read -r file; do mv "$file" "$file.moved"; done
    find $new -name '*.moved' | while read -r file; do mv "$file" "${file%.moved}"; done
    [ $((round % 3)) -eq 0 ] && sync
    [ $((round % 5)) -eq 0 ] && echo 3 >/proc/sys/vm/drop_caches 2>/dev/null
    diff -r /usr/include $new || echo "FAILED: other files in round $round"
    [ "$(cat <&5)" = "$(seq 1 $round)" ] || echo "FAILED: the open file has changed in round $round"
    [ "$(stat -L -c %i /dev/fd/4)" = "$number" ] || echo "FAILED: the open file has another number"
    exec 4>&- 5<&-
    rm -r $new || echo "FAILED to remove in round $round"
    ends=$((ends + $(dd bs=8192 iflag=nonblock <&3 2>/dev/null | grep -c 'file server of vda was started again')))
done
echo "the file server ended $ends times in $round rounds" >/dev/kmsg
[ $ends -ge 30 ] && echo "ok the file server was started again 30 times"
diff -r /usr/include /mnt/tree && echo "ok all files are as they were"
umount /mnt && e2fsck -f -n $disk >/dev/null 2>&1 && echo "ok the file system is sound"
