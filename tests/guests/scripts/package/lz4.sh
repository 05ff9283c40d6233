#!/bin/sh
# PACKAGE0051 lz4: compresses and finds damage
seq 1 100000 >numbers
lz4 -q numbers numbers.lz4 && lz4 -tq numbers.lz4 && lz4cat numbers.lz4 | cmp - numbers
lz4 -9qc numbers | lz4 -dqc | cksum
head -c 1000 numbers.lz4 >cut.lz4; lz4 -tq cut.lz4 2>/dev/null
echo "status $?"
