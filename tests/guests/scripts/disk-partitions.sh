#!/bin/sh
# GUEST0163 partitions of a disk by GPT and MBR come and go with the table that sfdisk writes
export LC_ALL=C
check() { # check WHAT EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then echo "ok $1"; else echo "FAILED $1: expected '$2', got '$3'"; fi
}
passes() { # passes WHAT COMMAND...
    what=$1
    shift
    if "$@" >out 2>&1; then echo "ok $what"; else echo "FAILED $what: $?"; tail -5 out; fi
}
# Partitions.
printf 'label: gpt\nsize=8M, name=first\nsize=4M\n' | sfdisk -q /dev/vda >out 2>&1 || cat out
check "partitions by GPT" "vda disk vda1 part vda2 part" "$(lsblk -n -r -o NAME,TYPE | tr '\n' ' ' | sed 's/ $//')"
check "the size of a partition" 8388608 "$(blockdev --getsize64 /dev/vda1)"
passes "mkfs.ext4 of a partition" mkfs.ext4 -q -F /dev/vda1
passes "e2fsck of a partition" e2fsck -f -n /dev/vda1
start=$(cat /sys/class/block/vda1/start)
check "a partition is a window of the disk" "$(dd if=/dev/vda1 bs=512 count=64 2>/dev/null | md5sum)" \
    "$(dd if=/dev/vda bs=512 skip="$start" count=64 2>/dev/null | md5sum)"
check "fdisk lists them" 2 "$(fdisk -l /dev/vda | grep -c '^/dev/vda[12]')"
printf 'label: dos\n/dev/vda1: size=4M\n/dev/vda2: size=4M, type=5\n/dev/vda5: size=1M\n' | sfdisk -q /dev/vda >out 2>&1 || cat out
check "partitions by MBR" "vda1 vda2 vda5" "$(lsblk -n -r -o NAME | sed 1d | tr '\n' ' ' | sed 's/ $//')"
check "a node that is no partition any more is gone" no "$([ -e /dev/vda3 ] && echo yes || echo no)"
