#!/bin/sh
# PACKAGE0056 netcat-openbsd: sends a file through a Unix socket
which nc
nc -lU socket >received & sleep 1
seq 1 10000 | nc -NU socket
wait
cksum <received
nc -luU datagrams >one & sleep 1
echo datagram | nc -uU -w 1 datagrams; kill $! 2>/dev/null; wait
cat one
nc -U nothing
echo "status $?"
