#!/bin/sh
# PACKAGE0049 xz-utils: compresses by several threads and finds damage
seq 1 100000 >numbers
xz -k -T2 -1 numbers && xz -t numbers.xz && xz -dc numbers.xz | cmp - numbers
xz --robot --list numbers.xz | awk '$1 == "totals" { print $5 }'
printf '\377' | dd of=numbers.xz bs=1 seek=500 conv=notrunc status=none
xz -t numbers.xz
echo "status $?"
lzma -c numbers | unlzma | cksum
echo text | xz | xzcat
xzgrep -c 77777 /dev/null
