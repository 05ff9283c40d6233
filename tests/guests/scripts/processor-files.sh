#!/bin/sh
# GUEST0116 what /sys and /proc say of processors, and how many programs count
count=$(nproc)
last=$((count - 1))
all=0
[ $last = 0 ] || all=0-$last
# Whatever has started this may have mounted it or not.
[ -e /sys/devices ] || mount -t sysfs sysfs /sys
cd /sys/devices/system
for file in cpu/online cpu/possible cpu/present node/node0/cpulist; do
    is=$(cat $file)
    [ "$is" = $all ] && echo $file: all || echo $file: $is, not $all
done
echo "offline: '$(cat cpu/offline)'"
counts() { echo $(nproc --all) $(getconf _NPROCESSORS_CONF) $(getconf _NPROCESSORS_ONLN) $(ls -d cpu/cpu[0-9]* | wc -l) \
    $(ls /sys/bus/cpu/devices | wc -l) $(grep -c '^cpu[0-9]' /proc/stat) $(grep -c '^processor' /proc/cpuinfo); }
for number in $(counts); do
    [ $number = $count ] && echo as many || echo $number, not $count
done
for index in $(seq 0 $last); do
    [ $(cat cpu/cpu$index/topology/core_id) = $index ] || echo core $index
    [ $(cat cpu/cpu$index/topology/core_cpus_list) = $index ] || echo siblings of $index
    [ $(cat cpu/cpu$index/topology/package_cpus_list) = $all ] || echo package of $index
done
lscpu | sed -nE "s/ +/ /g; /^ ?(CPU\(s\)|On-line|Core|NUMA node0)/s/: ($count|$all)\$/: all/p"
lscpu --parse=CPU,CORE,SOCKET,NODE,ONLINE | grep -v '^#' | while IFS=, read -r cpu core socket node online; do
    [ $cpu = $core ] && echo $socket $node $online
done | uniq
for index in $(seq 0 $last); do
    taskset -c $index cut -d ' ' -f 39 /proc/self/stat | grep -qx $index || echo not at $index
done
cd cpu/cpu0/topology
for file in core_cpus core_cpus_list core_id core_siblings_list die_id physical_package_id thread_siblings_list; do
    echo $file $(stat -c '%a %F %h' $file)
done
stat -c '%a %F %h' .
stat -f -c %T /sys/devices
readlink /sys/bus/cpu/devices/cpu0
cat /sys/bus/cpu/devices/cpu0/topology/core_id
cd ../..
head -c 1 online; echo
[ "$(tail -c +2 online)" = "${all#0}" ] && echo and the rest
echo 0 >online
echo 0 >>online
echo 0 2>&1 <>online >&0
touch new
mkdir new
rm -f online
rmdir cpu0
mv online other
ln -s online other
cat cpu0
[ -e cpu$count ] || echo no more
