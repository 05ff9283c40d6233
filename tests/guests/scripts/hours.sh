#!/bin/sh
# hours.sh HOURS: mostly asleep, a process every ten seconds; prints the memory before, every hour, and after. For virtual
# time: docs/src/testing.md says how it is run.
memory() { sed -n 's/^MemFree: *//p' /proc/meminfo; grep 'unix' /proc/macadamia | cut -f4; }
echo "begin: $(memory | tr '\n' ' ')"
hour=0
while [ $hour -lt "${1:-8}" ]; do
    hour=$((hour + 1)) n=0
    while [ $n -lt 360 ]; do
        sleep 10
        /bin/true
        n=$((n + 1))
    done
    echo "hour $hour: $(memory | tr '\n' ' ')up $(cut -d' ' -f1 /proc/uptime) s"
done
