#!/bin/sh
# PACKAGE0050 zstd: compresses by several threads, with a dictionary, and finds damage
seq 1 100000 >numbers
zstd -q -T2 numbers && zstd -tq numbers.zst && zstd -dcq numbers.zst | cmp - numbers
zstd -q -19 -c numbers | zstdcat | cksum
for n in $(seq 1 200); do echo "{\"id\": $n, \"name\": \"thing $n\"}" >s$n; done
zstd -q --train s* -o dictionary --maxdict=2000 2>/dev/null && zstd -qD dictionary s7 -c | zstd -dqD dictionary
head -c 1000 numbers.zst >cut.zst; zstd -tq cut.zst
echo "status $?"
