#!/bin/sh
# GUEST0990 swap space holds what memory cannot, on partitions and in a file, and refuses what Linux refuses
export LC_ALL=C
printf 'label: gpt\n,256M\n,256M\n,\n' | sfdisk -q /dev/vda
uuid=0fc63daf-8483-4772-8e79-3d69d8477de4
for part in 1 2; do
    mkswap -L swap$part -U $uuid /dev/vda$part
done
blkid -p -o value -s TYPE -s LABEL /dev/vda1
swapon -p 10 /dev/vda1
swapon /dev/vda2
cat /proc/swaps
swapon --show
echo "--- a file"
mkfs.ext4 -q -b 4096 /dev/vda3
mount /dev/vda3 /mnt
dd if=/dev/zero of=/mnt/swapfile bs=1M count=48 status=none
chmod 600 /mnt/swapfile
mkswap -U $uuid /mnt/swapfile
swapon -p 20 /mnt/swapfile
truncate -s 1M /mnt/holes
chmod 600 /mnt/holes
mkswap -U $uuid /mnt/holes 2>/dev/null
swapon /mnt/holes
umount /mnt
sed 's/[[:space:]][[:space:]]*/ /g' /proc/swaps
: > /dev/shm/swap-test
/tests/bin/swap calls /dev/vda1 /mnt
mount /dev/vda1 /media
echo "--- garbage"
head -c 1M /dev/urandom > /mnt/garbage
chmod 600 /mnt/garbage
swapon /mnt/garbage
swapon /dev/vda3
swapoff /mnt/garbage
# More than fits into memory, and less than fits into swap space. What was read from there may stay
# there, too.
more=$(awk '/^MemTotal/ { print int($2 / 1024) + 32 }' /proc/meminfo)
for test in fill forked shared freed; do
    echo "--- $test"
    /tests/bin/swap $test $more
    echo "status $?"
done
echo "--- swapoff"
/tests/bin/swap hold $more /tmp/held &
while [ ! -e /tmp/held ] && kill -0 $!; do sleep 0.1; done
swapoff /mnt/swapfile && swapoff /dev/vda1 && echo "ok the areas are gone"
sed '1d; s/[[:space:]].*//' /proc/swaps
rm /tmp/held
wait $!
echo "status $?"
echo "--- the file can be used again"
rm /mnt/swapfile && umount /mnt && e2fsck -fn /dev/vda3 > /dev/null 2>&1 && echo "ok it is sound"
echo "--- hungry"
/tests/bin/swap hungry &
wait $! 2> /dev/null
echo "status $?"
swapoff -a
cat /proc/swaps
