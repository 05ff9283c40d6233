#!/bin/sh
# PACKAGE0015 bsdextrautils: makes columns, dumps bytes and draws a calendar
printf 'name:age\nAnn:41\nBob:7\n' | column -t -s:
printf 'macadamia\0\377' | hexdump -C
printf 'abc' | hd
printf 'b_\bb\n' | ul -t dumb
look -f macad /dev/null
echo "status $?"
printf 'a\tb\n' | col -x
seq 6 | colrm 1 0 | column -c 20
