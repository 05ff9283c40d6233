#!/bin/sh
# GUEST0111 what the system logs can be read, by the superuser; what a process has used of the processor can be asked for
echo "a line of mine" >/dev/kmsg
dd if=/dev/kmsg bs=8192 iflag=nonblock 2>/dev/null | grep -c "a line of mine"
dd if=/dev/kmsg bs=8192 count=1 2>/dev/null | wc -l
chroot --userspec=1000:1000 / dd if=/dev/kmsg bs=8192 count=1 2>/dev/null | wc -c
count=0
while [ $count -lt 100000 ]; do
    count=$((count + 1))
done
read -r stat </proc/self/stat
set -- ${stat##*) }
[ $((${12} + ${13})) -gt 0 ] && echo "time is counted"
