#!/bin/sh
# GUEST0270 The hardware clock with Debian's hwclock, and what /sys says of it
clock() { date -u -d "$(hwclock --show --utc)" +%s; }
near() { [ $(($1 - $2)) -ge -2 ] && [ $(($1 - $2)) -le 2 ] && echo "$3"; }
near "$(date +%s)" "$(clock)" "the system has the clock's time"
hwclock --set --utc --date '2031-02-03 04:05:06' && echo set
hwclock --show --utc | grep -o '^2031-02-03 04:05:[01]'
cat /sys/class/rtc/rtc0/date /sys/class/rtc/rtc0/hctosys
near "$(clock)" "$(cat /sys/class/rtc/rtc0/since_epoch)" 'its seconds'
grep -o '^04:05:' /sys/class/rtc/rtc0/time
hwclock --hctosys --utc && date -u '+%F %H:%M'
date -u -s '2029-12-31 23:59:00' >/dev/null && hwclock --systohc --utc
hwclock --show --utc | grep -o '^20[0-9-]* [0-9]*'
# The clock belongs to one program at a time, and to root.
exec 3</dev/rtc0
(exec 4</dev/rtc0) 2>&1 | grep -o 'Device or resource busy'
exec 3<&-
(exec 4</dev/rtc0) && echo free
stat -c '%a %F' /dev/rtc0
