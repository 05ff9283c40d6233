#!/bin/sh
# GUEST0108 random system calls with hostile pointers: processes may end by it, no other process is affected
/tests/bin/hammer 60 1000
echo "status $?"
echo after | cat
