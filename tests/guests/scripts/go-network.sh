#!/bin/sh
# GUEST0902 a Go program's streams, pages, datagrams and deadlines over the loopback
ip link set lo up
/tests/bin/go-program network
echo "status $?"
