#!/bin/sh
# GUEST0162 what a disk refuses is an error of the program that asked, and of no other
export LC_ALL=C
# The disk refuses to read sector 8192, and to write sector 16384.
dd if=/dev/vda of=/dev/null bs=4096 skip=1024 count=1 2>&1 | grep -c "Input/output error"
dd if=/dev/vda of=/dev/null bs=4096 skip=1000 count=8 2>/dev/null && echo "ok others can be read"
dd if=/dev/zero of=/dev/vda bs=4096 seek=2048 count=1 conv=fsync,notrunc 2>&1 | grep -c "fsync failed.*Input/output error"
dd if=/dev/zero of=/dev/vda bs=4096 seek=2048 count=1 oflag=direct conv=notrunc 2>&1 | grep -c "Input/output error"
